package redaction

import (
	"encoding/hex"
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
	return strings.Contains(text, "://") || isAction(text) || isCall(text) || text[0] == '.' && allIn(text[1:], &alnumSet) ||
		strings.Contains(text, ".") && isChain(text) || strings.Contains(text, "->") || strings.Contains(text, "::")
}

// isAction reports whether text is an action of a policy, as in iam:ChangePassword.
func isAction(text string) bool {
	_, action, _ := strings.Cut(text, ":")
	return len(action) > 3 && isUpper(action[0]) && isWordLike(action)
}

// isCall reports whether text is a call, or an element of an array.
func isCall(text string) bool {
	i := strings.IndexAny(text, "([")
	return i > 0 && strings.IndexByte(")];,", lastByte(text)) >= 0 && isChain(text[:i]) && shapeOf(text).digit < 4
}

// isCode is isSource for text in quotes: there, words joined by dots that end in
// a digit are a password.
func isCode(text string) bool { return isSource(text) && !isDigit(lastByte(text)) }

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

// isNumber reports whether text is a hexadecimal constant or a decimal fraction.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return strings.HasPrefix(text, "0x") && len(text) <= 24 && allIn(text[2:], &numberSet) ||
		strings.ContainsAny(text, ".eE") && strings.Trim(text, digits+".eE+-") == ""
}

// isProse reports whether text is a sentence or a phrase.
func isProse(text string) bool {
	sh := shapeOf(text)
	if sh.wide > 0 && sh.digit == 0 || sh.blank == 0 {
		return sh.wide > 0 && sh.digit == 0
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
	if i := strings.LastIndexByte(text, '.'); i >= 0 && lists["extension"][strings.ToLower(text[i+1:])] {
		return true
	}
	slashes, rest := strings.Count(text, "/"), strings.ReplaceAll(text, "/", "")
	return slashes > 0 && (text[0] == '/' && !isVeryRandom(rest) || shapeOf(text).digit == 0 && isWordy(text)) || slashes > 1 && !isRandom(rest)
}

// isSealed reports whether text is encrypted by Sealed Secrets of Kubernetes,
// and so may be published: in base64, two bytes with the length of the encrypted
// key, which is 256 or 512, the key, and the data.
func isSealed(text string) bool {
	const least = 366 // with a tag of 16 bytes, in base64
	return len(text) >= least && beginsWith(text, []string{"AQ", "Ag"}) && 'A' <= text[2] && text[2] <= 'D'
}

// inConnectionString reports whether the semicolon at i ends a field of a connection string.
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

// isPlaceholder reports whether text is one or more of our own placeholders
// with at most two letters or digits around them.
func isPlaceholder(text string) bool {
	rest := 0
	for i := 0; i < len(text); {
		if n := placeholderLen(text[i:]); n > 0 {
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
	t := strings.Trim(text, " \t\"'`\\")
	return t == "" || isEnclosed(t) || isVariableOf(t) || beginsWith(t, heads["reference"]) || isMask(t) ||
		strings.Contains(t, "${") && !strings.Contains(t, "://")
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
	switch text[0] {
	case '@':
		return lastByte(text) == '@' && len(text) > 1
	case '$':
		return isIdentifier(strings.TrimPrefix(text[1:], "env:"))
	case '%':
		return len(text) <= 3
	}
	return strings.HasPrefix(text, "__")
}

// isMask reports whether text is one or two different bytes, or cut short.
func isMask(text string) bool {
	n := distinct(text)
	return strings.HasSuffix(text, "...") || n == 1 || len(text) >= 6 && n <= 2 && shapeOf(text).digit < len(text)
}

// isCommonWords reports whether text is words of no secret, each with up to spare digits.
func isCommonWords(text string, spare int) bool {
	count := 0
	for w := range wordsOf(text[:min(len(text), maxLine)]) {
		count++
		core := strings.TrimRight(w, digits)
		if len(w)-len(core) > spare || !isCommonCompound(strings.ToLower(core)) {
			return false
		}
	}
	return count > 0
}

// isCommonCompound reports whether w is a row of common words.
func isCommonCompound(w string) bool {
	if len(w) > 40 {
		return false
	}
	common := lists["common"]
	reach := make([]bool, len(w)+1)
	reach[0] = true
	for i := range len(w) {
		if !reach[i] {
			continue
		}
		for j := i + 1; j <= len(w); j++ {
			if (j-i >= 3 || len(w) == j-i) && common[w[i:j]] {
				reach[j] = true
			}
		}
	}
	return reach[len(w)]
}

// isByteEscapes reports whether text is little more than escapes of bytes.
func isByteEscapes(text string) bool {
	return strings.Count(text, `\x`)*4+strings.Count(text, `\u`)*6+strings.Count(text, `\U`)*10+3 >= len(text)
}

// isCountingHex reports whether text is hex that counts up, as in test vectors: 000102...
func isCountingHex(text string) bool {
	data, err := hex.DecodeString(text)
	for i := 1; i < len(data); i++ {
		if data[i] != data[i-1]+1 {
			return false
		}
	}
	return err == nil && len(data) >= 8
}
