package redaction

import (
	"strconv"
	"strings"
)

// This file recognizes values that are no secrets: code, prose, paths, digests,
// public keys.

// isIdentifier reports whether text is one name of code.
func isIdentifier(text string) bool {
	return len(text) > 0 && !isDigit(text[0]) && allIn(text, &codeIdent)
}

// isSource reports whether text is an expression rather than a value: a call, an
// element of an array, members joined by dots.
func isSource(text string) bool {
	switch {
	case strings.Contains(text, "://"), text[0] == '.' && allIn(text[1:], &alnumSet) && len(text) < 8,
		isAction(text), isCall(text), beginsWith(text, mediaTypes):
		return true
	}
	return strings.ContainsAny(text, ".") && isChain(text) || strings.Contains(text, "->") || strings.Contains(text, "::")
}

// mediaTypes begin text that is the type of a value.
var mediaTypes = []string{"application/", "text/", "urn:"}

// isAction reports whether text is an action of a policy, as in iam:ChangePassword.
func isAction(text string) bool {
	service, action, ok := strings.Cut(text, ":")
	return ok && len(service) < 24 && allIn(service, &wordSet) &&
		len(action) > 3 && isUpper(action[0]) && isWordLike(action)
}

// isCall reports whether text is a call, or an element of an array.
func isCall(text string) bool {
	i := strings.IndexAny(text, "([")
	return i > 0 && isAlnum(text[i-1]) && strings.IndexByte(")];,", lastByte(text)) >= 0 &&
		strings.ContainsAny(text[i:], ")]") && isChain(text[:i]) && shapeOf(text).digit < 4
}

// isCode is isSource for text in quotes: there, words joined by dots that end in
// a digit are a password, unless they look a value up.
func isCode(text string) bool {
	return isSource(text) && !isDotted(text)
}

// isDotted reports whether text is words and a number, joined by dots.
func isDotted(text string) bool {
	if !isDigit(lastByte(text)) || !allIn(text, &dottedSet) {
		return false
	}
	for w := range wordsOf(text) {
		w = strings.ToLower(strings.TrimRight(w, digits))
		if lists["lookup"][w] || lists["common"][w] || lists["about"][w] {
			return false
		}
	}
	return true
}

// isChain reports whether text is names joined by dots, none of them random.
func isChain(text string) bool {
	text = strings.TrimLeft(text, "&*@$!")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "?.", "."), ".") {
		if !isIdentifier(part) || shapeOf(part).digit > 1 && len(part) > 5 && isRandom(part) {
			return false
		}
	}
	return true
}

// isSum reports whether text is an expression of names and numbers.
func isSum(text string) bool {
	if !strings.ContainsAny(text, "*+/%") || lastByte(text) == '=' || isGibberish(text) || len(text) >= 40 || isVeryRandom(text) || isKeyLike(text) {
		return false
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("*+/%()", r) }) {
		if !isNumber(part) && !isChain(part) {
			return false
		}
	}
	return true
}

// isNumber reports whether text is a small number or a hexadecimal constant.
func isNumber(text string) bool {
	if isFloat(text) || len(text) < 6 && isDigit(text[0]) && allIn(text, &numberSet) {
		return true
	}
	return (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "-0x")) && len(text) <= 20 && allIn(text[3:], &numberSet)
}

func isFloat(text string) bool {
	return strings.Contains(text, ".") && strings.Trim(text, "0123456789.eE+-") == ""
}

// isProse reports whether text is a sentence or a phrase.
func isProse(text string) bool {
	sh := shapeOf(text)
	if sh.wide > 0 && sh.wide*3 >= len(text) && (sh.digit == 0 || sh.blank > 0) || sh.wide > 0 && sh.blank > 0 && sh.digit < 3 {
		return true
	}
	if sh.blank == 0 {
		return false
	}
	words := strings.Fields(text)
	plain := 0
	for _, w := range words {
		w = strings.Trim(w, ".,;:!?'\"()<>/*`")
		if ws := shapeOf(w); ws.letters()+ws.wide == len(w) && !isGibberish(w) || len(w) <= 3 {
			plain++
		}
	}
	return plain*3 >= len(words)*2
}

// isPath reports whether text is the path of a file.
func isPath(text string) bool {
	if beginsWith(text, pathHeads) || len(text) > 2 && text[1] == ':' && text[2] == '\\' {
		return true
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && len(text)-i <= 6 && lists["extension"][strings.ToLower(text[i+1:])] {
		return true
	}
	slashes := strings.Count(text, "/")
	if slashes > 0 && shapeOf(text).digit == 0 && isWordy(text) {
		return true
	}
	return slashes > 0 && text[0] == '/' && !isVeryRandom(strings.ReplaceAll(text, "/", "")) || slashes > 1 && !isRandom(strings.ReplaceAll(text, "/", ""))
}

var pathHeads = []string{"./", "../", "~/"}

// isHash reports whether text has the length of a common digest in hex.
func isHash(text string) bool {
	switch len(text) {
	case 32, 40, 56, 64, 96, 128:
		return allIn(text, &hexSet)
	}
	return false
}

// isDigest reports whether text is a digest that names its algorithm, as in lock
// files and the integrity attributes of web pages.
func isDigest(text string) bool {
	if !strings.HasPrefix(text, "sha") {
		return false
	}
	i := run(text, 3, &digitSet, 4)
	return i > 3 && i+20 < len(text) && (text[i] == '-' || text[i] == ':') && allIn(text[i+1:], &base64Set)
}

// isSchema reports whether text is rules for valid input, or a type.
func isSchema(text string) bool {
	return strings.HasPrefix(text, "required|") || strings.Contains(text, "|required") || strings.HasPrefix(text, "xs:") || strings.HasPrefix(text, "xsd:") ||
		strings.HasPrefix(text, "scram-sha-") && len(text) < 16
}

// isPublicKey reports whether text is a public key: one of OpenSSH, or the base64
// of a structure that begins with the key's algorithm.
func isPublicKey(text string) bool {
	return beginsWith(text, publicKeyHeads) || strings.HasPrefix(text, "MI") && len(text) > 30 && strings.Contains(text[:30], "IjANBgkqhkiG9w0BAQEFAA")
}

var publicKeyHeads = []string{"ssh-ed25519 AAAA", "ssh-rsa AAAA", "ssh-dss AAAA", "ecdsa-sha2-nistp", "MFkwEwYHKoZIzj0CAQYI", "MFwwDQYJKoZIhvcNAQEB", "MCowBQYDK2Vw"}

// isCountingHex reports whether text is bytes in hex that count up, such as the
// keys of test vectors: 000102...
func isCountingHex(text string) bool {
	if len(text) < 16 || len(text)%2 != 0 || !allIn(text, &hexSet) {
		return false
	}
	before := -1
	for i := 0; i < len(text); i += 2 {
		n, err := strconv.ParseUint(text[i:i+2], 16, 8)
		if err != nil || before >= 0 && int(n) != before+1 {
			return false
		}
		before = int(n)
	}
	return true
}

// isSealed reports whether text is encrypted by Sealed Secrets of Kubernetes,
// and so may be published: in base64, two bytes with the length of the encrypted
// key, which is 256 or 512, the key, and the data.
func isSealed(text string) bool {
	const short, long = 366, 707 // with a tag of 16 bytes, in base64
	if len(text) < short || text[0] != 'A' || text[2] < 'A' || text[2] > 'D' || strings.ContainsAny(text, "-_") {
		return false
	}
	return (text[1] == 'Q' || text[1] == 'g' && len(text) >= long) && allIn(text, &base64Set)
}

// inConnectionString reports whether the semicolon at i is between the fields of
// a connection string.
func inConnectionString(s string, i int) bool {
	next := run(s, i+1, &fieldSet, 40)
	return next < len(s) && next > i+1 && s[next] == '='
}

// containsKey reports whether a run of text is a key by itself.
func containsKey(text string) bool {
	for i := 0; i < len(text); i++ {
		end := run(text, i, &base64Set, len(text))
		if end-i >= 20 && isVeryRandom(text[i:end]) {
			return true
		}
		i = end
	}
	return false
}
