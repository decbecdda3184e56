package redaction

import (
	"encoding/hex"
	"html"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review/plain"
)

// A view is text as the detectors read it: itself, or its unfolded lines.
type view struct {
	text string
	// segments map ranges of text to ranges of what was unfolded, in the order of text. The text itself has none.
	segments []segment
}

// A segment maps text[at:at+n] to raw[from:to]. The lengths differ only where the text of an escape
// replaces the escape.
type segment struct{ at, n, from, to int }

// add appends text, the decoded form of raw[from:to].
func (v *view) add(b *strings.Builder, text string, from, to int) {
	if text != "" {
		v.segments = append(v.segments, segment{b.Len(), len(text), from, to})
		b.WriteString(text)
	}
}

// ranges maps text[start:end] to ranges of raw: one for each line, and one for each piece if raw has
// something between the pieces that is not a part of the secret.
func (v *view) ranges(start, end int) (out [][2]int) {
	if v.segments == nil {
		return [][2]int{{start, end}}
	}
	const gap = 3 // of an escape that stands for nothing
	first := sort.Search(len(v.segments), func(i int) bool { return v.segments[i].at+v.segments[i].n > start })
	for _, s := range v.segments[first:] {
		if s.at >= end {
			break
		}
		from, to := s.from, s.to
		if s.n == to-from {
			from += max(0, start-s.at)
			to -= max(0, s.at+s.n-end)
		}
		if n := len(out); n > 0 && from >= out[n-1][1] && from <= out[n-1][1]+gap && v.text[s.at-1] != '\n' {
			out[n-1][1] = to
			continue
		}
		out = append(out, [2]int{from, to})
	}
	return out
}

// viewsOf returns a text, and the view of its unfolded lines if there are any.
func viewsOf(s string) []*view {
	if v := unfold(s); v != nil {
		return []*view{{text: s}, v}
	}
	return []*view{{text: s}}
}

// unfold returns the view of the lines of s that hold zero-width characters, look-alike letters, NULs,
// escapes of URLs, HTML and JSON, or joined literals, with each replaced by the text that it encodes, or
// nil if no line has one. The view is read in addition to s.
func unfold(s string) *view {
	var v view
	var b strings.Builder
	end := 0 // of what is read
	for i := nextEncoded(s, 0); i < len(s); {
		at := end + strings.LastIndexByte(s[end:i], '\n') + 1
		for end = lex.LineEnd(s, i); i < end; i = nextEncoded(s, at) {
			v.add(&b, s[at:i], at, i)
			text, n := unfoldAt(s, i)
			v.add(&b, text, i, i+n)
			at = i + n
			if at > end { // joined literals go on in the next line
				end = lex.LineEnd(s, at-1)
			}
		}
		v.add(&b, s[at:end], at, end)
	}
	if v.text = b.String(); v.text == "" {
		return nil
	}
	return &v
}

// nextEncoded returns the offset of the next byte that encodes other text, or len(s).
func nextEncoded(s string, at int) int {
	for i := lex.FirstIn(s, at, &mayBeEncoded); i < len(s); i = lex.FirstIn(s, i, &mayBeEncoded) {
		if _, n := unfoldAt(s, i); n > 0 {
			return i
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	return len(s)
}

// mayBeEncoded is 1 for the bytes that may begin something that is unfolded.
var mayBeEncoded = func() lex.Set {
	s := lex.SetOf("\x00\x1b%&\\\"'`")
	for c := 0x80; c < len(s); c++ {
		s[c] = 1
	}
	return s
}()

// unfoldAt returns the text that the n bytes at s[i] encode. n is 0 if s[i] encodes
// nothing.
func unfoldAt(s string, i int) (text string, n int) {
	switch c := s[i]; c {
	case 0:
		return "", 1
	case '"', '\'', '`':
		return "", joinLen(s[i:])
	case '&':
		return decodeEntity(s[i:])
	case '%', '\\':
		return decodeHex(s[i:])
	case '\x1b': // a color of a terminal
		if end := lex.Run(s, min(i+2, len(s)), &colorSet, 16); strings.HasPrefix(s[i:], "\x1b[") && lex.ByteAt(s, end) == 'm' {
			return "", end + 1 - i
		}
		return "", 0
	}
	return foldRune(s, i)
}

// lookalikes maps letters and marks that look like ASCII to ASCII.
var lookalikes = func() map[rune]string {
	m := map[rune]string{}
	for pair := range judge.Words("lookalike") {
		r, n := utf8.DecodeRuneInString(pair)
		m[r] = pair[n:]
	}
	return m
}()

// foldRune returns the ASCII text that the n bytes of the rune at s[i] look like. n is 0
// if the rune is kept. A look-alike is folded only beside an ASCII letter, so that text
// in another script is kept.
func foldRune(s string, i int) (text string, n int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	switch {
	case plain.Invisible(r) && !unicode.IsControl(r):
		return "", n
	case unicode.Is(unicode.Zs, r):
		return " ", n
	}
	if ascii := norm.NFKC.PropertiesString(s[i:]).Decomposition(); len(ascii) == 1 {
		return string(ascii), n
	}
	text, ok := lookalikes[r]
	besideLetter := lex.IsAlnum(lex.ByteAt(s, i-1)) || lex.IsAlnum(lex.ByteAt(s, i+n))
	if !ok || lex.IsAlnum(text[0]) && !besideLetter {
		return "", 0
	}
	return text, n
}

// hexEscapes are what is before the two digits of the code of an ASCII character.
var hexEscapes = []string{"%", `\u00`, `\x`}

// decodeHex returns the character whose escape s begins with, and the escape's length.
func decodeHex(s string) (text string, n int) {
	var c [1]byte
	if strings.HasPrefix(s, `\u{`) {
		code, _, ok := strings.Cut(s[len(`\u{`):min(len(s), 12)], "}")
		if r, err := strconv.ParseUint(code, 16, 8); ok && err == nil && r >= ' ' && r < utf8.RuneSelf {
			return string(rune(r)), len(`\u{}`) + len(code)
		}
	}
	for _, head := range hexEscapes {
		n := len(head) + len("41")
		if len(s) < n || !strings.HasPrefix(s, head) {
			continue
		}
		code := []byte(s[len(head):n])
		_, err := hex.Decode(c[:], code)
		switch {
		case err != nil, code[0] == '2' && lex.IsLower(code[1]): // %2d is a verb of a format
		case (c[0] == '\n' || c[0] == '\r') && head == "%":
			return "\n", n
		case c[0] >= ' ' && c[0] < utf8.RuneSelf:
			return string(c[:]), n
		}
	}
	return "", 0
}

// decodeEntity returns the ASCII character whose HTML entity s begins with, and the
// entity's length.
func decodeEntity(s string) (text string, n int) {
	end := strings.IndexByte(s[:min(len(s), 10)], ';')
	if end < 0 {
		return "", 0
	}
	switch text = html.UnescapeString(s[:end+1]); {
	case text == "\u00a0":
		return " ", end + 1
	case len(text) == 1 && text >= " ":
		return text, end + 1
	}
	return "", 0
}

// joinLen returns the length of what joins the literal that ends at s[0] with the
// next one: a quote, blanks, an operator, a quote. It is 0 if nothing does.
func joinLen(s string) int {
	q := s[0]
	if len(s) < 3 || !joinStart.Has(s[1]) {
		return 0
	}
	i := lex.Run(s, 1, &lex.SpaceSet, maxJoin)
	operator := false
	for i < len(s) && i < maxJoin && strings.IndexByte("+.&\\|", s[i]) >= 0 {
		operator = true
		i++
		i = lex.Run(s, i, &lex.SpaceSet, maxJoin)
	}
	if i >= len(s) || i == 1 || s[i] != q && !(operator && lex.QuoteSet.Has(s[i])) {
		return 0
	}
	return i + 1
}

const maxJoin = 48 // the blanks and operators between joined literals

var (
	colorSet  = lex.SetOf(lex.Digits, ";")
	joinStart = lex.SetOf(" \t\r\n+.&\\|")
)
