package redaction

import (
	"cmp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A span is a range of bytes that holds a secret, or one line of it.
type span struct {
	start, end int
	judge.Reason
	// value is the secret as it was read: unfolded.
	value string
	// tag is the same for the same secret within one payload.
	tag string
	// hidden is the reason why a reader of the masked text misses more than a literal, or "".
	hidden string
}

// spans adds what was detected in v as spans of raw, which v is of: one for each line, without outer blanks.
func (v *view) spans(out []span, raw string, found []judge.Span) []span {
	out = slices.Grow(out, len(found))
	for _, f := range found {
		s := span{Reason: f.Reason, hidden: f.Hidden, value: strings.Clone(strings.TrimSpace(v.text[f.Start:f.End]))}
		for _, r := range v.ranges(f.Start, f.End) {
			for start, end := r[0], r[1]; start < end; {
				stop := lex.LineEnd(raw[:end], start)
				s.start = lex.Run(raw, start, &lex.SpaceSet, stop-start)
				if s.end = lex.RunBack(raw, stop, &lex.SpaceSet, stop-s.start); s.start < s.end {
					out = append(out, s)
				}
				start = stop
			}
		}
	}
	return out
}

// merge sorts spans and merges those that overlap. The first span, or the longest of those with the same
// start, gives its class.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.start-b.start, b.end-a.end, strings.Compare(a.Class, b.Class), strings.Compare(a.Rule, b.Rule))
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}
