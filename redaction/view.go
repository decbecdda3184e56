package redaction

import "sort"

// A view is text as the detectors read it: one side of a hunk, or a line with
// its disguises taken off. Offsets map back to the raw text, which is never
// changed to be searched.
type view struct {
	text string
	// segs map ranges of text to ranges of raw, in the order of text.
	segs []segment
	// sections are where the hunks of a diff begin in text: before each, lines
	// of the file are not shown.
	sections []int
}

// A segment says that text[at:at+n] stands for raw[raw:raw+rawLen]. Lengths
// differ only where one byte stands for an escape.
type segment struct {
	at, n       int
	raw, rawLen int
}

// whole is the view that is the raw text itself.
func whole(raw string) view { return view{text: raw, segs: []segment{{0, len(raw), 0, len(raw)}}} }

// rawSpans maps text[start:end] back: one range per line, and one per piece
// where something that is no part of the secret was left out in between.
func (v *view) rawSpans(start, end int, each func(start, end int)) {
	if len(v.segs) == 1 && v.segs[0].n == v.segs[0].rawLen {
		shift := v.segs[0].raw - v.segs[0].at
		each(start+shift, end+shift)
		return
	}
	i := sort.Search(len(v.segs), func(i int) bool { return v.segs[i].at+v.segs[i].n > start })
	from, to := -1, -1
	for ; i < len(v.segs) && v.segs[i].at < end; i++ {
		s := v.segs[i]
		a, b := s.raw, s.raw+s.rawLen
		if s.n == s.rawLen {
			a += max(0, start-s.at)
			b -= max(0, s.at+s.n-end)
		}
		if from >= 0 && a >= to && a <= to+maxFolded && v.text[s.at-1] != '\n' {
			to = b
			continue
		}
		if from >= 0 {
			each(from, to)
		}
		from, to = a, b
	}
	if from >= 0 {
		each(from, to)
	}
}

// maxFolded is the longest gap that is part of a secret: zero-width characters.
const maxFolded = 3

// A viewBuilder assembles a view from pieces of raw.
type viewBuilder struct {
	text []byte
	segs []segment
}

// add appends text that stands for raw[at:at+n].
func (b *viewBuilder) add(text string, at, n int) {
	if len(text) == n && len(b.segs) > 0 {
		last := &b.segs[len(b.segs)-1]
		if last.n == last.rawLen && last.raw+last.rawLen == at {
			last.n += n
			last.rawLen += n
			b.text = append(b.text, text...)
			return
		}
	}
	b.segs = append(b.segs, segment{len(b.text), len(text), at, n})
	b.text = append(b.text, text...)
}
