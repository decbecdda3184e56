package redaction

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// lookalikes are letters of other scripts that are read as ASCII ones.
var lookalikes = map[rune]byte{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'ѕ': 's', 'і': 'i', 'ј': 'j', 'ԁ': 'd', 'һ': 'h', 'ԛ': 'q', 'ԝ': 'w', 'к': 'k', 'т': 't',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'У': 'Y', 'Х': 'X', 'Ѕ': 'S', 'І': 'I', 'Ј': 'J',
	'α': 'a', 'ο': 'o', 'ρ': 'p', 'ν': 'v', 'ι': 'i', 'κ': 'k', 'τ': 't', 'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P', 'Τ': 'T', 'Υ': 'Y', 'Χ': 'X',
	'ı': 'i', 'ſ': 's', 'ɑ': 'a', 'ɡ': 'g',
	'\u2018': '\'', '\u2019': '\'', '\u201c': '"', '\u201d': '"', '\u2010': '-', '\u2011': '-', '\u2013': '-', '\u2212': '-', '\uff1a': ':', '\ua789': ':', '\u2236': ':',
}

// foldRune is the ASCII text that the rune r at s[i] stands for; ok is false if
// it stands for itself. A look-alike is folded only beside an ASCII letter, so
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
	if !ok || isAlnum(c) && !besideLetter(s, i, n) {
		return "", false
	}
	return string(c), true
}

func besideLetter(s string, i, n int) bool {
	return i > 0 && isAlnum(s[i-1]) || i+n < len(s) && isAlnum(s[i+n])
}

var entities = map[string]string{"&quot;": `"`, "&apos;": "'", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&colon;": ":", "&equals;": "=", "&nbsp;": " "}

// decodeEscape is the text of the escape that s begins with and its length;
// n is 0 if s begins with none. Only escapes of ASCII count.
func decodeEscape(s string) (text string, n int) {
	switch s[0] {
	case 0:
		return "", 1
	case '\x1b': // a colour of a terminal
		if end := run(s, min(2, len(s)), &colourSet, 16); strings.HasPrefix(s, "\x1b[") && end < len(s) && s[end] == 'm' {
			return "", end + 1
		}
	case '%':
		if c, ok := hexByte(s, 1); ok && (c == '\n' || c == '\r') {
			return "\n", 3
		} else if ok && c >= ' ' && c < utf8.RuneSelf && !(s[1] == '2' && isLower(s[2])) {
			return string(c), 3
		}
	case '\\':
		if strings.HasPrefix(s, `\u00`) {
			if c, ok := hexByte(s, 4); ok && c >= ' ' && c < utf8.RuneSelf {
				return string(c), 6
			}
		}
		if strings.HasPrefix(s, `\x`) {
			if c, ok := hexByte(s, 2); ok && c >= ' ' && c < utf8.RuneSelf {
				return string(c), 4
			}
		}
	case '&':
		return decodeEntity(s)
	}
	return "", 0
}

var colourSet = setOf(digits, ";")

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
	c, err := strconv.ParseInt(num, base, 8) // ASCII is what fits
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
	switch {
	case isDigit(c):
		return c - '0'
	default:
		return foldByte(c) - 'a' + 10
	}
}

// joinStart are the bytes that may follow a literal that is joined.
var joinStart = setOf(" \t\r\n+.&\\|")

// maxJoin bounds the blanks and operators between joined literals.
const maxJoin = 48

// joinLen is the length of what joins the literal that ends at s[0] with the
// next: a quote, blanks, an operator, a quote. 0 if nothing is joined there.
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
