package redaction

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// lookalikes maps letters and marks that look like ASCII to ASCII.
var lookalikes = func() map[rune]byte {
	m := map[rune]byte{}
	for _, pair := range []struct{ from, to string }{
		{"аеорсухѕіјԁһԛԝктАВЕКМНОРСТУХЅІЈ", "aeopcyxsijdhqwktABEKMHOPCTYXSIJ"}, // Cyrillic
		{"αορνικτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aopviktABEZHIKMNOPTYX"},                     // Greek
		{"ıſɑɡ", "isag"}, // Latin
		{"\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2212\uff1a\ua789\u2236", `''""----:::`},
	} {
		i := 0
		for _, r := range pair.from {
			m[r] = pair.to[i]
			i++
		}
	}
	return m
}()

// foldRune returns the ASCII text that the rune r at s[i] stands for. ok is false
// if it stands for itself. A look-alike is folded only beside an ASCII letter, so
// that text in another script stays what it is.
func foldRune(s string, i int, r rune, n int) (text string, ok bool) {
	switch {
	case r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2060' && r <= '\u2064', r >= '\ufe00' && r <= '\ufe0f',
		r == '\ufeff', r == '\u00ad', r == '\u034f', r == '\u180e':
		return "", true
	case r == '\u00a0', r >= '\u2000' && r <= '\u200a', r == '\u202f', r == '\u205f', r == '\u3000':
		return " ", true
	case r >= '\uff01' && r <= '\uff5e':
		return string(r - '\uff01' + '!'), true
	}
	c, ok := lookalikes[r]
	besideLetter := i > 0 && isAlnum(s[i-1]) || i+n < len(s) && isAlnum(s[i+n])
	if !ok || isAlnum(c) && !besideLetter {
		return "", false
	}
	return string(c), true
}

var entities = map[string]string{"&quot;": `"`, "&apos;": "'", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&colon;": ":", "&equals;": "=", "&nbsp;": " "}

// decodeEscape returns the text of the escape that s begins with, and its
// length, which is 0 if s begins with none. Only escapes of ASCII count.
func decodeEscape(s string) (text string, n int) {
	switch s[0] {
	case 0:
		return "", 1
	case '\x1b': // a color of a terminal
		if end := run(s, min(2, len(s)), &colorSet, 16); strings.HasPrefix(s, "\x1b[") && end < len(s) && s[end] == 'm' {
			return "", end + 1
		}
	case '%':
		if c, ok := hexByte(s, 1); ok && (c == '\n' || c == '\r') {
			return "\n", 3
		} else if ok && c >= ' ' && c < utf8.RuneSelf && !(s[1] == '2' && isLower(s[2])) {
			return string(c), 3
		}
	case '\\':
		for _, head := range []string{`\u00`, `\x`} {
			if c, ok := hexByte(s, len(head)); ok && strings.HasPrefix(s, head) && c >= ' ' && c < utf8.RuneSelf {
				return string(c), len(head) + 2
			}
		}
	case '&':
		return decodeEntity(s)
	}
	return "", 0
}

func decodeEntity(s string) (text string, n int) {
	end := strings.IndexByte(s[:min(len(s), 10)], ';')
	if end < 0 {
		return "", 0
	}
	if text, ok := entities[s[:end+1]]; ok {
		return text, end + 1
	}
	num, ok := strings.CutPrefix(s[:end], "&#")
	if !ok || num == "" {
		return "", 0
	}
	base := 10
	if num[0] == 'x' || num[0] == 'X' {
		base, num = 16, num[1:]
	}
	c, err := strconv.ParseInt(num, base, 8) // 8 bits: only ASCII fits
	if err != nil || c < ' ' {
		return "", 0
	}
	return string(rune(c)), end + 1
}

func hexByte(s string, i int) (byte, bool) {
	if len(s) < i+2 || !hexSet.has(s[i]) || !hexSet.has(s[i+1]) {
		return 0, false
	}
	return unhex(s[i])<<4 | unhex(s[i+1]), true
}

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return foldByte(c) - 'a' + 10
}

// maxJoin bounds the blanks and operators between joined literals.
const maxJoin = 48

// joinLen returns the length of what joins the literal that ends at s[0] with the
// next one: a quote, blanks, an operator, a quote. It returns 0 if nothing is
// joined there.
func joinLen(s string) int {
	q := s[0]
	if q != '"' && q != '\'' && q != '`' || len(s) < 3 || !joinStart.has(s[1]) {
		return 0
	}
	i := run(s, 1, &spaceSet, maxJoin)
	operator := false
	for i < len(s) && i < maxJoin && strings.IndexByte("+.&\\|", s[i]) >= 0 {
		operator = true
		i++
		i = run(s, i, &spaceSet, maxJoin)
	}
	if i >= len(s) || i == 1 || s[i] != q && !(operator && quoteSet.has(s[i])) {
		return 0
	}
	return i + 1
}
