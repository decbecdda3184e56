package redaction

import (
	"sort"
	"strings"
)

// A view is text as the detectors read it: one side of a diff, or unfolded lines.
// Its offsets map back to the raw text, which the search never changes.
type view struct {
	text string
	// segs map ranges of text to ranges of the text below, in the order of text.
	segs []segment
	// below is the view that segs map to. If it is nil, they map to the raw text.
	below *view
	// sections are where hunks begin in text: lines of the file are missing before each.
	sections []int
}

// A segment maps text[at:at+n] to below[raw:raw+rawLen]. The lengths differ only
// where the text of an escape replaces the escape.
type segment struct {
	at, n       int
	raw, rawLen int
}

// whole returns the view that is the raw text itself.
func whole(raw string) *view {
	return &view{text: raw, segs: []segment{{0, len(raw), 0, len(raw)}}}
}

// rawSpans maps text[start:end] to ranges of raw: one per line, and one per piece
// where raw has something between the pieces that is not a part of the secret.
func (v *view) rawSpans(start, end int, each func(start, end int)) {
	if v.below != nil {
		inRaw := each
		each = func(start, end int) { v.below.rawSpans(start, end, inRaw) }
	}
	from, to := -1, -1
	first := sort.Search(len(v.segs), func(i int) bool { return v.segs[i].at+v.segs[i].n > start })
	for _, s := range v.segs[first:] {
		if s.at >= end {
			break
		}
		a, b := s.raw, s.raw+s.rawLen
		if s.n == s.rawLen {
			a += max(0, start-s.at)
			b -= max(0, s.at+s.n-end)
		}
		if from >= 0 && a >= to && a <= to+3 && v.text[s.at-1] != '\n' {
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

// A viewBuilder assembles a view from pieces of the text below.
type viewBuilder struct {
	text     strings.Builder
	segs     []segment
	sections []int
}

// add appends text, the decoded form of below[at:at+n].
func (b *viewBuilder) add(text string, at, n int) {
	if text == "" {
		return
	}
	var last segment
	if len(b.segs) > 0 {
		last = b.segs[len(b.segs)-1]
	}
	if end := last.at + last.n; len(text) == n && last.n == last.rawLen && last.raw+last.rawLen == at && end == b.text.Len() && end > 0 {
		b.segs[len(b.segs)-1] = segment{last.at, last.n + n, last.raw, last.rawLen + n}
	} else {
		b.segs = append(b.segs, segment{b.text.Len(), len(text), at, n})
	}
	b.text.WriteString(text)
}

// view returns what was added, or nil if there is nothing.
func (b *viewBuilder) view(below *view) *view {
	if b.text.Len() == 0 {
		return nil
	}
	return &view{b.text.String(), b.segs, below, b.sections}
}
