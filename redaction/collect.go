package redaction

import (
	"cmp"
	"slices"
	"strings"
)

// withoutPlaceholders cuts our own placeholders out of spans: they hold no
// secret, and what is masked once stays as it is.
func withoutPlaceholders(raw string, spans []span) []span {
	if len(spans) == 0 || !strings.Contains(raw, placeholderHead) {
		return spans
	}
	var out []span
	at := 0
	add := func(s span, start, end int) {
		if s.start, s.end = max(s.start, start), min(s.end, end); s.start < s.end && strings.ContainsAny(raw[s.start:s.end], digits+letters) {
			out = append(out, s)
		}
	}
	for _, s := range spans {
		free := s.start
		for {
			i := strings.Index(raw[at:min(len(raw), s.end+len(placeholderHead)-1)], placeholderHead)
			if i < 0 {
				at = max(at, s.end-len(placeholderHead))
				break
			}
			at += i
			n := placeholderLen(raw[at:])
			if n > 0 {
				add(s, free, at)
				free = max(free, at+n)
			}
			if at+n >= s.end {
				break
			}
			at += max(1, n)
		}
		add(s, free, s.end)
		at = max(0, min(at, s.end-maxPlaceholder))
	}
	return out
}

// A collector maps the spans of views back to the raw text.
type collector struct {
	raw   string
	spans []span
}

// take adds what was found in a view. The text of the view may be used again,
// so what is kept of it is kept as raw text, or copied.
func (c *collector) take(v view, finds []find) {
	c.spans = slices.Grow(c.spans, len(finds))
	for _, f := range finds {
		s := span{class: f.class, rule: f.rule}
		v.rawSpans(f.start, f.end, func(start, end int) {
			if s.value == "" && end-start == f.end-f.start {
				s.value = strings.TrimSpace(c.raw[start:end])
			} else if s.value == "" {
				s.value = strings.Clone(strings.TrimSpace(v.text[f.start:f.end]))
			}
			c.addLines(s, start, end)
		})
	}
}

// addLines adds raw[start:end] without line ends and outer blanks.
func (c *collector) addLines(s span, start, end int) {
	for start < end {
		stop := lineEnd(c.raw[:end], start)
		s.start, s.end = start, stop
		for s.start < s.end && spaceSet.has(c.raw[s.start]) {
			s.start++
		}
		for s.start < s.end && spaceSet.has(c.raw[s.end-1]) {
			s.end--
		}
		if s.start < s.end {
			c.spans = append(c.spans, s)
		}
		start = stop
	}
}

// finish sorts the spans and joins those that overlap or touch. The first of
// equal begin and greatest length gives its class.
func (c *collector) finish() []span {
	slices.SortFunc(c.spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		if a.end != b.end {
			return b.end - a.end
		}
		return cmp.Or(strings.Compare(a.class, b.class), strings.Compare(a.rule, b.rule))
	})
	out := c.spans[:0]
	for _, s := range c.spans {
		if n := len(out); n > 0 && s.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}
