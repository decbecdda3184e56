package judge

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// This file recognizes values that are not secrets: code, prose, paths, digests,
// public keys.

// IsIdentifier reports whether text is one name of code.
func IsIdentifier(text string) bool {
	return len(text) > 0 && !lex.IsDigit(text[0]) && lex.AllIn(text, &lex.CodeIdent)
}

// IsSource reports whether text is an expression rather than a value: a call, an
// element of an array, members joined by dots, a URL, the digest of an image.
func IsSource(text string) bool {
	return isURL(text) || strings.Contains(text, "->") || strings.Contains(text, "::") ||
		strings.Contains(text, "@sha256:") || isAction(text) || isCall(text) || strings.Contains(text, ".") && isChain(text)
}

// isURL reports whether text holds a URL, or is one in the form of a query.
func isURL(text string) bool {
	return strings.Contains(text, "://") || strings.HasPrefix(text, "http%3A%2F%2F") || strings.HasPrefix(text, "https%3A%2F%2F")
}

// isAction reports whether text is an action of a policy, as in iam:ChangePassword.
func isAction(text string) bool {
	service, action, _ := strings.Cut(text, ":")
	return len(action) > 3 && lex.IsUpper(action[0]) && IsWordLike(action) && lex.AllIn(service, &lex.WordSet)
}

// isCall reports whether text is a call, or an element of an array.
func isCall(text string) bool {
	i := strings.IndexAny(text, "([")
	return i > 0 && strings.IndexByte(")];,", lex.LastByte(text)) >= 0 && isChain(text[:i]) && shapeOf(text).digit < 4
}

// isExpression reports whether the text is an expression and not a value that looks like one. Text that holds
// the name of a secret refers to one, unless it is words and a number in quotes, in a cell or in an argument.
// Other text is a value of a strong name in data, and in quotes if it has a word with a number.
func (c *Candidate) isExpression() bool {
	if !IsSource(c.text) {
		return false
	}
	isWordsAndNumber := isDotted(c.text)
	isLiteral := c.Quoted || c.Bind == Cell || c.Bind == Argument
	isNumbered := IsMixedCase(c.text) || isWordsAndNumber
	for w := range wordsOf(c.text) {
		if c.Names.Of(w).Strength >= Medium && !(isLiteral && isWordsAndNumber) {
			return true
		}
		isNumbered = isNumbered || isNumberedWord(w)
	}
	switch {
	case c.text[0] == '$', c.Name.Strength < Medium, isURL(c.text), strings.Contains(c.text, "@sha256:"), isAction(c.text):
		return true
	case c.InData && c.Name.Strength == Strong, c.Bind == Spaced && IsFlag(c.S, c.Name.Begin):
		return false
	}
	return !c.Quoted && !c.InData || !isNumbered
}

// isNumberedWord reports whether w is a word with a number behind it, such as water9, and not the name of an algorithm.
func isNumberedWord(w string) bool {
	core := strings.TrimRight(w, lex.Digits)
	return core != w && len(core) >= 3 && lex.AllIn(core, &lex.LetterSet) && !isAlgorithm(core)
}

// isDotted reports whether text is words and a number, joined by dots: a password rather
// than code.
func isDotted(text string) bool {
	return lex.IsDigit(lex.LastByte(text)) && lex.AllIn(text, &dottedSet)
}

// isChain reports whether text is names joined by dots, none of them random.
func isChain(text string) bool {
	text = strings.TrimLeft(text, "&*@$!")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "?.", "."), ".") {
		if !IsIdentifier(part) || shapeOf(part).digit > 1 && IsRandom(part) {
			return false
		}
	}
	return true
}

// isNumber reports whether text is a small number or a hexadecimal constant.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && lex.IsDigit(text[0]) && lex.AllIn(text, &numberSet) && (len(text) < 6 || text[1] == 'x' && len(text) <= 21)
}

// IsProse reports whether text is a sentence or a phrase.
func IsProse(text string) bool {
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
		if IsWordLike(strings.ReplaceAll(w, "_", "")) || len(w) <= 3 {
			plain++
		}
	}
	return plain*3 >= len(words)*2
}

// IsPath reports whether text is the path of a file.
func IsPath(text string) bool {
	slashes := strings.Count(text, "/")
	file := text
	if slashes > 0 { // dir/file.go:12
		file, _, _ = strings.Cut(text, ":")
	}
	if i := strings.LastIndexByte(file, '.'); i >= 0 && lists["extension"][strings.ToLower(file[i+1:])] {
		return true
	}
	names := strings.ReplaceAll(text, "/", "")
	return slashes > 0 && text[0] == '/' && !IsVeryRandom(names) || slashes > 1 && !IsRandom(names)
}

// containsKey reports whether a run of text is a key by itself.
func containsKey(text string) bool {
	for i := 0; i < len(text); i++ {
		end := lex.Run(text, i, &lex.Base64Set, len(text))
		if end-i >= 20 && IsVeryRandom(text[i:end]) {
			return true
		}
		i = end
	}
	return false
}

// IsPlaceholder reports whether text is one or more of our own placeholders
// with at most two letters or digits around them.
func (n *Names) IsPlaceholder(text string) bool {
	rest := 0
	for i := 0; i < len(text); {
		if n := n.PlaceholderLen(text[i:]); n > 0 {
			i += n
			continue
		}
		if lex.IsAlnum(text[i]) {
			rest++
		}
		if rest == 3 {
			return false
		}
		i++
	}
	return true
}

// encrypted matches a value that Jasypt has encrypted.
var encrypted = regexp.MustCompile(`^ENC\([A-Za-z0-9+/=]+\)$`)

// IsReference reports whether text is a variable, a template or a mask such as ****.
func IsReference(text string) bool {
	t := text
	if !lex.IsAlnum(lex.ByteAt(text, 0)) || !lex.IsAlnum(lex.LastByte(text)) {
		t = strings.Trim(text, " \t\"'`\\")
	}
	return t == "" || isEnclosed(t) || isVariableOf(t) || isMask(t) ||
		encrypted.MatchString(t) || lex.BeginsWith(t, heads["reference"]) ||
		strings.Contains(t, "${") && !strings.Contains(t, "://") || strings.Contains(t, "{{")
}

// isEnclosed reports whether text is in the marks of a placeholder, such as <password>.
func isEnclosed(text string) bool {
	for _, marks := range heads["enclosed"] {
		if text[0] == marks[0] && lex.LastByte(text) == marks[1] && (text[0] != '{' || !strings.Contains(text, ":")) {
			return !IsRandom(strings.TrimPrefix(text[1:max(1, len(text)-1)], PlaceholderHead[1:]))
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
		return IsIdentifier(strings.TrimPrefix(inner, "env:")) && shapeOf(text).digit*3 < len(text)
	case '%':
		return len(text) <= 3
	}
	return strings.HasPrefix(text, "__") && strings.HasSuffix(text, "_")
}

// isMask reports whether text is one or two different bytes, or cut short.
func isMask(text string) bool {
	n := lex.Distinct(text)
	return strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…") || strings.Contains(text, "****") ||
		n == 1 || n == 2 && len(text) >= 6 && shapeOf(text).digit < len(text)
}

// IsCommonWords reports whether text is words of no secret, each with up to spare digits.
func IsCommonWords(text string, spare int) bool {
	if len(text) > 64 {
		return false
	}
	count := 0
	for w := range wordsOf(text) {
		count++
		core := strings.TrimRight(w, lex.Digits)
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
	reach := make([]bool, len(w)+1)
	reach[0] = true
	for i := range len(w) {
		for j := i + 1; reach[i] && j <= len(w); j++ {
			reach[j] = reach[j] || (j-i >= 3 || j-i == len(w)) && lists["common"][w[i:j]]
		}
	}
	return reach[len(w)]
}

// IsEncodedPair reports whether text is the base64 of user:password.
func IsEncodedPair(text string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	isBinary := func(r rune) bool { return r < ' ' && r != 0 || r >= 0x7f }
	return err == nil && len(data) >= 3 && bytes.ContainsAny(data, ":\x00") && bytes.IndexFunc(data, isBinary) < 0
}
