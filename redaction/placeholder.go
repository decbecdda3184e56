package redaction

import "strings"

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

// isReference reports whether text replaces a value: a reference to a variable,
// a template, a mask such as ****.
func isReference(text string) bool {
	t := text
	if text == "" || !isAlnum(text[0]) || !isAlnum(lastByte(text)) {
		t = strings.Trim(text, " \t\"'`\\")
	}
	if t == "" {
		return true
	}
	first, final := t[0], lastByte(t)
	switch {
	case first == '<' && final == '>', first == '[' && final == ']', first == '%' && final == '%',
		first == '{' && final == '}' && !strings.Contains(t, ":"):
		return !isRandom(strings.TrimPrefix(t[1:max(1, len(t)-1)], placeholderHead[1:]))
	case first == '@' && final == '@' && len(t) > 2 && isIdentifier(t[1:len(t)-1]),
		beginsWith(t, referenceHeads),
		first == '$' && len(t) > 1 && isIdentifier(strings.TrimPrefix(t[1:], "env:")) && shapeOf(t).digit*3 < len(t),
		first == '%' && len(t) <= 3, first == '_' && final == '_' && strings.HasPrefix(t, "__"):
		return true
	}
	return isMask(t) || strings.Contains(t, "${") && !strings.Contains(t, "://") || strings.Contains(t, "{{")
}

// isMask reports whether text is made of marks or of one or two different bytes,
// or cut short by its author.
func isMask(text string) bool {
	switch {
	case !isAlnum(text[0]) && (strings.Trim(text, "*") == "" || strings.Trim(text, ".-_…•") == ""),
		foldByte(text[0]) == 'x' && strings.Trim(text, "xX") == "",
		strings.HasSuffix(text, "..."), strings.HasSuffix(text, "…"), strings.Contains(text, "****"):
		return true
	}
	n := distinct(text)
	return n == 1 || len(text) >= 6 && n <= 2 && shapeOf(text).digit < len(text)
}

// referenceHeads begin a template, or the name of a place where a secret is kept.
var referenceHeads = []string{
	"${", "$(", "{{", "#{", "<%", "<?", "%(", "!Ref", "!Sub", "&lt;",
	"@keychain:", "@env:", "op://", "vault:", "arn:", "env:", "file:", "secretsmanager:", "###",
}

// isCommonWords reports whether text is words that no secret is made of, each
// with at most spare digits.
func isCommonWords(text string, spare int) bool {
	if len(text) > 60 {
		return false
	}
	count := 0
	for w := range wordsOf(text) {
		count++
		core := strings.TrimRight(w, digits)
		if len(w)-len(core) > spare && core != "" || core == "" && len(w) > spare+1 {
			return false
		}
		if core != "" && !isCommonCompound(strings.ToLower(core)) {
			return false
		}
	}
	return count > 0 && shapeOf(text).other <= count
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
