package redaction

import (
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

// nextEncoded returns the offset of the first byte from at on that stands for
// other text, or -1.
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
var mayBeEncoded = func() (t [256]uint8) {
	for c := utf8.RuneSelf; c < 256; c++ {
		t[c] = 1
	}
	for _, c := range "\x00\x1b%&\\\"'`" {
		t[c] = 1
	}
	return t
}()

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

// unfoldAt returns the text that the n bytes at s[i] stand for. n is 0 if s[i]
// stands for itself.
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
