package redaction

import "strings"

// isPlaceholder reports whether text is one or more of our own placeholders
// and nothing else that counts.
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

// standsFor reports whether text is written in the place of a value: a
// reference to a variable, a template, a mask.
func standsFor(text string) bool {
	t := text
	if text == "" || !isAlnum(text[0]) || !isAlnum(last(text)) {
		t = strings.Trim(text, " \t\"'`\\")
	}
	if t == "" {
		return true
	}
	first, final := t[0], last(t)
	switch {
	case first == '<' && final == '>', first == '[' && final == ']', first == '%' && final == '%',
		first == '{' && final == '}' && !strings.Contains(t, ":"):
		return !random(strings.TrimPrefix(t[1:max(1, len(t)-1)], placeholderHead[1:]))
	case first == '@' && final == '@' && len(t) > 2 && isIdentifier(t[1:len(t)-1]):
		return true
	case beginsWith(t, referenceHeads):
		return true
	case first == '$' && len(t) > 1 && isIdentifier(strings.TrimPrefix(t[1:], "env:")) && shapeOf(t).digit*3 < len(t):
		return true
	case first == '%' && len(t) <= 3, first == '_' && final == '_' && strings.HasPrefix(t, "__"):
		return true
	case !isAlnum(first) && (strings.Trim(t, "*") == "" || strings.Trim(t, ".-_…•") == ""), foldByte(first) == 'x' && strings.Trim(t, "xX") == "":
		return true
	case distinct(t) == 1, strings.HasSuffix(t, "..."), strings.HasSuffix(t, "…"), strings.Contains(t, "****"):
		return true
	case strings.Contains(t, "${") && !strings.Contains(t, "://"), strings.Contains(t, "{{"):
		return true
	}
	return len(t) >= 6 && distinct(t) <= 2 && shapeOf(t).digit < len(t)
}

// referenceHeads begin a template, or the name of a place where a secret is kept.
var referenceHeads = []string{
	"${", "$(", "{{", "#{", "<%", "<?", "%(", "!Ref", "!Sub", "&lt;",
	"@keychain:", "@env:", "op://", "vault:", "arn:", "env:", "file:", "secretsmanager:", "###",
}

// dullWords reports whether text is made of words that no secret is made of,
// and at most spare digits.
func dullWords(text string, spare int) bool {
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
		if core != "" && !segmented(strings.ToLower(core)) {
			return false
		}
	}
	return count > 0 && shapeOf(text).other <= count
}

// segmented reports whether w is a row of dull words.
func segmented(w string) bool {
	if len(w) > 40 {
		return false
	}
	reach := make([]bool, len(w)+1)
	reach[0] = true
	for i := range len(w) {
		if !reach[i] {
			continue
		}
		for j := i + 1; j <= len(w); j++ {
			if (j-i >= 3 || len(w) == j-i) && lists["dull"][w[i:j]] {
				reach[j] = true
			}
		}
	}
	return reach[len(w)]
}

// byteEscapes reports whether text is little more than escapes of bytes.
func byteEscapes(text string) bool {
	return strings.Count(text, `\x`)*4+strings.Count(text, `\u`)*6+strings.Count(text, `\U`)*10+3 >= len(text)
}
