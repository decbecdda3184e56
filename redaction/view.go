package redaction

import "sort"

// A view is text as the detectors read it: one side of a diff, or unfolded lines.
// Its offsets map back to the raw text, which the search never changes.
type view struct {
	text string
	// segs map ranges of text to ranges of raw, in the order of text.
	segs []segment
	// sections are where hunks begin in text: lines of the file are missing before each.
	sections []int
}

// A segment maps text[at:at+n] to raw[raw:raw+rawLen]. The lengths differ only
// where the text of an escape replaces the escape.
type segment struct {
	at, n       int
	raw, rawLen int
}

// whole returns the view that is the raw text itself.
func whole(raw string) view { return view{text: raw, segs: []segment{{0, len(raw), 0, len(raw)}}} }

// segsFrom returns the segments from the one that holds text[start] on.
func (v *view) segsFrom(start int) []segment {
	return v.segs[sort.Search(len(v.segs), func(i int) bool { return v.segs[i].at+v.segs[i].n > start }):]
}

// rawSpans maps text[start:end] to ranges of raw: one per line, and one per piece
// where raw has something between the pieces that is no part of the secret.
func (v *view) rawSpans(start, end int, each func(start, end int)) {
	if len(v.segs) == 1 && v.segs[0].n == v.segs[0].rawLen {
		shift := v.segs[0].raw - v.segs[0].at
		each(start+shift, end+shift)
		return
	}
	from, to := -1, -1
	for _, s := range v.segsFrom(start) {
		if s.at >= end {
			break
		}
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

// rawRange returns the range of raw that text[start:end] stands for.
func (v *view) rawRange(start, end int) (at, n int) {
	first, final := -1, 0
	v.rawSpans(start, end, func(a, b int) {
		if first < 0 {
			first = a
		}
		final = b
	})
	return first, final - first
}

// rawSegments calls each for every segment of text[start:end].
func (v *view) rawSegments(start, end int, each func(text string, at, n int)) {
	for _, s := range v.segsFrom(start) {
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
