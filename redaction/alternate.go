package redaction

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// alternate is the view in which the lines of v that are disguised are read
// without their disguise: zero-width characters, look-alikes, NULs, escapes of
// URLs, HTML and JSON, literals that are joined. ok is false if no line is.
// It is read beside v, not instead.
func alternate(v view) (alt view, ok bool) {
	var b viewBuilder
	s := v.text
	for at := 0; ; {
		i := nextDisguise(s, at)
		if i < 0 {
			break
		}
		begin, end := strings.LastIndexByte(s[at:i], '\n')+at+1, lineEnd(s, i)
		begin = max(at, begin)
		end = unfoldLines(&b, v, begin, end)
		at = end
	}
	if len(b.text) == 0 {
		return view{}, false
	}
	return view{text: string(b.text), segs: b.segs}, true
}

// nextDisguise is the offset of the first byte from at that may begin
// a disguise, or -1.
func nextDisguise(s string, at int) int {
	for i := at; i < len(s); i++ {
		for ; i+8 <= len(s); i += 8 {
			t := s[i : i+8]
			if suspicious[t[0]]|suspicious[t[1]]|suspicious[t[2]]|suspicious[t[3]]|suspicious[t[4]]|suspicious[t[5]]|suspicious[t[6]]|suspicious[t[7]] != 0 {
				break
			}
		}
		for i < len(s) && suspicious[s[i]] == 0 {
			i++
		}
		if i >= len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if _, folded := foldRune(s, i, r, n); folded {
				return i
			}
			i += n - 1
			continue
		}
		if _, n := decodeEscape(s[i:]); n > 0 || joinLen(s[i:]) > 0 {
			return i
		}
	}
	return -1
}

// suspicious is 1 for the bytes that may begin a disguise.
var suspicious = func() (t [256]uint8) {
	for c := utf8.RuneSelf; c < 256; c++ {
		t[c] = 1
	}
	for _, c := range "\x00\x1b%&\\\"'`" {
		t[c] = 1
	}
	return t
}()

// unfoldLines adds s[begin:end] of v without disguise to b and returns where it
// stopped: at end, or further on if a join crossed the line's end.
func unfoldLines(b *viewBuilder, v view, begin, end int) int {
	s := v.text
	plain := begin
	flush := func(to int) {
		if plain < to {
			v.rawSpansExact(plain, to, func(text string, at, n int) { b.add(text, at, n) })
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

// unfoldAt is what the n bytes at s[i] stand for; n is 0 if for themselves.
func unfoldAt(s string, i int) (text string, n int) {
	c := s[i]
	if suspicious[c] == 0 {
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
	if text, n = decodeEscape(s[i:]); n > 0 {
		return text, n
	}
	return "", 0
}

// rawRange is the range of raw that text[start:end] stands for.
func (v *view) rawRange(start, end int) (at, n int) {
	first, last := -1, 0
	v.rawSpans(start, end, func(a, b int) {
		if first < 0 {
			first = a
		}
		last = b
	})
	return first, last - first
}

// rawSpansExact calls each for every segment of text[start:end].
func (v *view) rawSpansExact(start, end int, each func(text string, at, n int)) {
	first := sort.Search(len(v.segs), func(i int) bool { return v.segs[i].at+v.segs[i].n > start })
	for _, s := range v.segs[first:] {
		a, b := max(start, s.at), min(end, s.at+s.n)
		if a >= b {
			return
		}
		if s.n == s.rawLen {
			each(v.text[a:b], s.raw+a-s.at, b-a)
		} else {
			each(v.text[a:b], s.raw, s.rawLen)
		}
	}
}
