package redaction

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

// placeholder is what replaces the secret: one line of ASCII.
func (s span) placeholder() string { return judge.PlaceholderHead + s.Class + ":" + s.tag + "]" }

// tagger returns the function that makes the tags of a scope. A tag is four hex
// digits of a keyed hash: enough to distinguish the secrets of one review, too
// few to recover a secret by guessing, even with the key.
func (p *Pipeline) tagger(scope string) func(value string) string {
	mac := hmac.New(sha256.New, p.tagKey)
	var before, tag string // often the same secret follows
	return func(value string) string {
		if tag != "" && value == before {
			return tag
		}
		mac.Reset()
		mac.Write([]byte(scope + "\x00" + value))
		var sum [sha256.Size]byte
		before, tag = value, hex.EncodeToString(mac.Sum(sum[:0]))[:judge.TagLen]
		return tag
	}
}

// render replaces spans of raw by their placeholders.
func render(raw string, spans []span) string {
	if len(spans) == 0 {
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw))
	at := 0
	for _, s := range spans {
		b.WriteString(raw[at:s.start])
		b.WriteString(s.placeholder())
		at = s.end
	}
	b.WriteString(raw[at:])
	return b.String()
}

// names are the name rules, which know the classes of placeholders.
type names struct{ *judge.Names }

// withoutPlaceholders removes placeholders from spans: they hold no secret, and a
// second redaction has to leave them unchanged.
func (n names) withoutPlaceholders(raw string, spans []span) []span {
	if len(spans) == 0 || !strings.Contains(raw, judge.PlaceholderHead) {
		return spans
	}
	var out []span
	add := func(s span, start, end int) {
		if s.start, s.end = start, end; strings.ContainsAny(raw[start:end], lex.Digits+lex.Letters) {
			out = append(out, s)
		}
	}
	at, length := 0, 0 // the next placeholder
	for _, s := range spans {
		free := s.start // where the rest of the span begins
		for {
			for at+length <= free && at < len(raw) {
				at, length = n.nextPlaceholder(raw, at+length)
			}
			if at >= s.end {
				break
			}
			if free < at {
				add(s, free, at)
			}
			free = at + length
		}
		if free < s.end {
			add(s, free, s.end)
		}
	}
	return out
}

// nextPlaceholder returns where the next placeholder from at on begins, and its length. If
// there is none, it begins at the end.
func (n names) nextPlaceholder(raw string, at int) (begin, length int) {
	for {
		i := strings.Index(raw[at:], judge.PlaceholderHead)
		if i < 0 {
			return len(raw), 0
		}
		if size := n.PlaceholderLen(raw[at+i:]); size > 0 {
			return at + i, size
		}
		at += i + 1
	}
}

// A collector maps the detections of views to spans of the raw text.
type collector struct {
	raw   string
	spans []span
}

// take adds the detections of a view. The buffer of the view is used again, so
// values are taken from the raw text or copied.
func (c *collector) take(v *view, detections []judge.Span) {
	c.spans = slices.Grow(c.spans, len(detections))
	for _, f := range detections {
		s := span{Reason: f.Reason, hidden: f.Hidden}
		v.rawSpans(f.Start, f.End, func(start, end int) {
			if s.value == "" && end-start == f.End-f.Start {
				s.value = strings.TrimSpace(c.raw[start:end])
			} else if s.value == "" {
				s.value = strings.Clone(strings.TrimSpace(v.text[f.Start:f.End]))
			}
			c.addLines(s, start, end)
		})
	}
}

// addLines adds raw[start:end], one span per line, without outer blanks.
func (c *collector) addLines(s span, start, end int) {
	for start < end {
		stop := lex.LineEnd(c.raw[:end], start)
		s.start = lex.Run(c.raw, start, &lex.SpaceSet, stop-start)
		if s.end = lex.RunBack(c.raw, stop, &lex.SpaceSet, stop-s.start); s.start < s.end {
			c.spans = append(c.spans, s)
		}
		start = stop
	}
}

// finish sorts the spans and merges those that overlap. The first span, or the
// longest of those with the same start, gives its class.
func (c *collector) finish() []span {
	slices.SortFunc(c.spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return cmp.Or(b.end-a.end, strings.Compare(a.Class, b.Class), strings.Compare(a.Rule, b.Rule))
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
