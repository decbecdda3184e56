package redaction

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unfold returns the view of the lines of v that hold zero-width characters,
// look-alike letters, NULs, escapes of URLs, HTML and JSON, or joined literals,
// with each replaced by the text it stands for. ok is false if no line does. The
// view is read in addition to v.
func unfold(v view) (unfolded view, ok bool) {
	var b viewBuilder
	s := v.text
	for at := 0; ; {
		i := nextEncoded(s, at)
		if i < 0 {
			break
		}
		begin := max(at, strings.LastIndexByte(s[at:i], '\n')+at+1)
		at = unfoldLines(&b, v, begin, lineEnd(s, i))
	}
	if len(b.text) == 0 {
		return view{}, false
	}
	return view{text: string(b.text), segs: b.segs}, true
}

// nextEncoded returns the offset of the next byte that stands for other text, or -1.
func nextEncoded(s string, at int) int {
	for i := at; i < len(s); i++ {
		for ; i+8 <= len(s); i += 8 {
			t := s[i : i+8]
			if mayBeEncoded[t[0]]|mayBeEncoded[t[1]]|mayBeEncoded[t[2]]|mayBeEncoded[t[3]]|mayBeEncoded[t[4]]|mayBeEncoded[t[5]]|mayBeEncoded[t[6]]|mayBeEncoded[t[7]] != 0 {
				break
			}
		}
		for i < len(s) && mayBeEncoded[s[i]] == 0 {
			i++
		}
		if i >= len(s) {
			break
		}
		if _, n := unfoldAt(s, i); n > 0 {
			return i
		}
		if s[i] >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n - 1
		}
	}
	return -1
}

// mayBeEncoded is 1 for the bytes that may begin something that is unfolded.
var mayBeEncoded = encodedSet.table()

// unfoldLines adds s[begin:end] of v unfolded to b and returns where it stopped:
// at end, or behind it if joined literals go on in the next line.
func unfoldLines(b *viewBuilder, v view, begin, end int) int {
	s := v.text
	plain := begin
	flush := func(to int) {
		if plain < to {
			v.rawSegments(plain, to, b.add)
		}
	}
	for i := begin; i < end; {
		text, n := unfoldAt(s, i)
		if n == 0 {
			i++
			continue
		}
		flush(i)
		if text != "" {
			at, rawLen := v.rawRange(i, i+n)
			b.add(text, at, rawLen)
		}
		i += n
		plain = i
		if i > end {
			end = lineEnd(s, i-1)
		}
	}
	flush(end)
	return end
}

// unfoldAt returns what the n bytes at s[i] stand for. n is 0 if s[i] is itself.
func unfoldAt(s string, i int) (text string, n int) {
	c := s[i]
	if mayBeEncoded[c] == 0 {
		return "", 0
	}
	if c >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[i:])
		if text, ok := foldRune(s, i, r, n); ok {
			return text, n
		}
		return "", 0
	}
	if n := joinLen(s[i:]); n > 0 {
		return "", n
	}
	return decodeEscape(s[i:])
}

// lookalikes maps letters and marks that look like ASCII to ASCII.
var lookalikes = func() map[rune]byte {
	m := map[rune]byte{}
	for pair := range lists["lookalike"] {
		r, n := utf8.DecodeRuneInString(pair)
		m[r] = pair[n]
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
	if len(s) < i+2 {
		return 0, false
	}
	var c [1]byte
	_, err := hex.Decode(c[:], []byte(s[i:i+2]))
	return c[0], err == nil
}

// joinLen returns the length of what joins the literal that ends at s[0] with the
// next one: a quote, blanks, an operator, a quote. It is 0 if nothing does.
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
