package redaction

import (
	"strings"
)

// This file recognizes values that are no secrets: code, prose, paths, digests,
// public keys.

// isIdentifier reports whether text is one name of code.
func isIdentifier(text string) bool {
	return len(text) > 0 && !isDigit(text[0]) && allIn(text, &codeIdent)
}

// isSource reports whether text is an expression rather than a value: a call, an
// element of an array, members joined by dots, a URL, the digest of an image.
func isSource(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(text, "->") || strings.Contains(text, "::") || strings.Contains(text, "@sha256:") ||
		isAction(text) || isCall(text) || strings.Contains(text, ".") && isChain(text)
}

// isAction reports whether text is an action of a policy, as in iam:ChangePassword.
func isAction(text string) bool {
	service, action, _ := strings.Cut(text, ":")
	return len(action) > 3 && isUpper(action[0]) && isWordLike(action) && allIn(service, &wordSet)
}

// isCall reports whether text is a call, or an element of an array.
func isCall(text string) bool {
	i := strings.IndexAny(text, "([")
	return i > 0 && strings.IndexByte(")];,", lastByte(text)) >= 0 && isChain(text[:i]) && shapeOf(text).digit < 4
}

// isCode is isSource for text in quotes.
func isCode(text string) bool { return isSource(text) && !isDotted(text) }

// isDotted reports whether text is words and a number, joined by dots: a password rather
// than code.
func isDotted(text string) bool { return isDigit(lastByte(text)) && allIn(text, &dottedSet) }

// isChain reports whether text is names joined by dots, none of them random.
func isChain(text string) bool {
	text = strings.TrimLeft(text, "&*@$!")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "?.", "."), ".") {
		if !isIdentifier(part) || shapeOf(part).digit > 1 && isRandom(part) {
			return false
		}
	}
	return true
}

// isNumber reports whether text is a small number or a hexadecimal constant.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && isDigit(text[0]) && allIn(text, &numberSet) && (len(text) < 6 || text[1] == 'x' && len(text) <= 21)
}

func isFloat(text string) bool {
	return strings.Contains(text, ".") && strings.Trim(text, "0123456789.eE+-") == ""
}

// isProse reports whether text is a sentence or a phrase.
func isProse(text string) bool {
	sh := shapeOf(text)
	if sh.wide*3 > len(text) && sh.digit == 0 || sh.wide > 0 && sh.blank > 0 && sh.digit < 3 {
		return true
	}
	if sh.blank == 0 {
		return false
	}
	words := strings.Fields(text)
	plain := 0
	for _, w := range words {
		w = strings.Trim(w, ".,;:!?'\"()<>/*`")
		if isWordLike(w) || len(w) <= 3 {
			plain++
		}
	}
	return plain*3 >= len(words)*2
}

// isPath reports whether text is the path of a file.
func isPath(text string) bool {
	slashes := strings.Count(text, "/")
	file := text
	if slashes > 0 { // dir/file.go:12
		file, _, _ = strings.Cut(text, ":")
	}
	if i := strings.LastIndexByte(file, '.'); i >= 0 && lists["extension"][strings.ToLower(file[i+1:])] {
		return true
	}
	if slashes > 0 && shapeOf(text).digit == 0 && isWordy(text) {
		return true
	}
	names := strings.ReplaceAll(text, "/", "")
	return slashes > 0 && text[0] == '/' && !isVeryRandom(names) || slashes > 1 && !isRandom(names)
}

// isSchema reports whether text is rules for valid input, or a type.
func isSchema(text string) bool {
	return beginsWith(text, heads["schema"]) || strings.HasPrefix(text, "scram-sha-") && len(text) < 16
}

// isPublicKey reports whether text is a public key of OpenSSH, or the base64
// of a structure that begins with the key's algorithm.
func isPublicKey(text string) bool {
	return beginsWith(text, heads["publickey"]) || strings.HasPrefix(text, "MI") && strings.Contains(text[:min(len(text), 30)], "IjANBgkqhkiG9w0BAQEFAA")
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

// isPlaceholder reports whether text is one or more of our own placeholders
// with at most two letters or digits around them.
func (rs *ruleset) isPlaceholder(text string) bool {
	rest := 0
	for i := 0; i < len(text); {
		if n := rs.placeholderLen(text[i:]); n > 0 {
			i += n
			continue
		}
		if isAlnum(text[i]) {
			rest++
		}
		if rest == 3 {
			return false
		}
		i++
	}
	return true
}

// isReference reports whether text is a variable, a template or a mask such as ****.
func isReference(text string) bool {
	t := text
	if text == "" || !isAlnum(text[0]) || !isAlnum(lastByte(text)) {
		t = strings.Trim(text, " \t\"'`\\")
	}
	return t == "" || isEnclosed(t) || isVariableOf(t) || beginsWith(t, referenceHeads) || isMask(t) ||
		strings.Contains(t, "${") && !strings.Contains(t, "://") || strings.Contains(t, "{{")
}

// isEnclosed reports whether text is in the marks of a placeholder, such as <password>.
func isEnclosed(text string) bool {
	for _, marks := range heads["enclosed"] {
		if text[0] == marks[0] && lastByte(text) == marks[1] && (text[0] != '{' || !strings.Contains(text, ":")) {
			return !isRandom(strings.TrimPrefix(text[1:max(1, len(text)-1)], placeholderHead[1:]))
		}
	}
	return false
}

// isVariableOf reports whether text is a variable of a shell, a template or a format.
func isVariableOf(text string) bool {
	switch inner := text[1:]; text[0] {
	case '@':
		return strings.HasSuffix(inner, "@")
	case '$':
		return isIdentifier(strings.TrimPrefix(inner, "env:")) && shapeOf(text).digit*3 < len(text)
	case '%':
		return len(text) <= 3
	}
	return strings.HasPrefix(text, "__") && strings.HasSuffix(text, "_")
}

// isMask reports whether text is one or two different bytes, or cut short.
func isMask(text string) bool {
	n := distinct(text)
	return strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…") || strings.Contains(text, "****") ||
		n == 1 || n <= 2 && len(text) >= 6 && shapeOf(text).digit < len(text) || strings.Trim(text, ".-_…•") == ""
}

var referenceHeads = heads["reference"]

// isCommonWords reports whether text is words of no secret, each with up to spare digits.
func isCommonWords(text string, spare int) bool {
	if len(text) > maxPhrase {
		return false
	}
	count := 0
	for w := range wordsOf(text) {
		count++
		core := strings.TrimRight(w, digits)
		if core == "" {
			spare++ // a number of its own
		}
		if len(w)-len(core) > spare || !isCommonCompound(strings.ToLower(core)) {
			return false
		}
	}
	return count > 0 && shapeOf(text).other <= count
}

// isCommonCompound reports whether w is a row of common words.
func isCommonCompound(w string) bool {
	if len(w) > maxLine {
		return false
	}
	reach := make([]bool, len(w)+1)
	reach[0] = true
	for i := range len(w) {
		for j := i + 1; reach[i] && j <= len(w); j++ {
			reach[j] = reach[j] || (j-i >= 3 || j-i == len(w)) && lists["common"][w[i:j]]
		}
	}
	return reach[len(w)]
}

// isByteEscapes reports whether text is little more than escapes of bytes.
func isByteEscapes(text string) bool {
	return strings.Count(text, `\x`)*4+strings.Count(text, `\u`)*6+strings.Count(text, `\U`)*10+3 >= len(text)
}
