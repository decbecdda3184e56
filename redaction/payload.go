package redaction

import (
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// A form says how the lines of a text are to be read.
type form int

const (
	formText form = iota // plain text
	formDiff             // a unified diff: prefixes and hunk headers are structure
)

// A part is one text of a payload and the place its redacted form goes to.
type part struct {
	form form
	raw  string
	out  *Text
	// spans are the masked ranges of raw, sorted, disjoint, none across a line end.
	spans []span
}

// A payload is all text that leaves together.
type payload struct {
	// scope separates tags: the same secret in another scope has another tag.
	scope string
	parts []*part
}

func newPayload(scope string) *payload { return &payload{scope: scope} }

func (pl *payload) add(f form, raw string, out *Text) {
	pl.parts = append(pl.parts, &part{form: f, raw: raw, out: out})
}

func (pl *payload) size() int {
	n := 0
	for _, part := range pl.parts {
		n += len(part.raw)
	}
	return n
}

// counts tells how many places were masked, by class; the lines of one
// multi-line secret count once.
func (pl *payload) counts() []review.Redaction {
	byClass := map[string]int{}
	for _, part := range pl.parts {
		for i, s := range part.spans {
			if i == 0 || s.tag != part.spans[i-1].tag {
				byClass[s.class]++
			}
		}
	}
	var out []review.Redaction
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		out = append(out, review.Redaction{Class: class, Count: byClass[class]})
	}
	return out
}

// redact masks every part of pl and sets their outs, all or none.
func (p *Pipeline) redact(pl *payload) (err error) {
	defer recoverBlocked(&err)
	if n := pl.size(); n > p.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "redact %s: %d bytes are more than the limit of %d", pl.scope, n, p.maxBytes)
	}
	for _, part := range pl.parts {
		if !readable(part.raw) {
			return failure.Errorf(failure.RedactionBlocked, "redact %s: a part of %d bytes is not text", pl.scope, len(part.raw))
		}
		part.spans = p.engine.scan(part.raw, part.form)
		for i := range part.spans {
			part.spans[i].tag = p.tag(pl.scope, part.raw[part.spans[i].start:part.spans[i].end])
		}
	}
	for _, part := range pl.parts {
		*part.out = Text{render(part.raw, part.spans)}
	}
	return nil
}

// recoverBlocked turns a panic into an error that shows nothing of the text.
func recoverBlocked(err *error) {
	if r := recover(); r != nil {
		*err = failure.Errorf(failure.RedactionBlocked, "redact: a detector panicked (%T)", r)
	}
}

// render replaces spans of raw by their placeholders. Bytes that are not UTF-8
// become U+FFFD, so that no encoder has to change the result again.
func render(raw string, spans []span) string {
	var b strings.Builder
	b.Grow(len(raw))
	at := 0
	for _, s := range spans {
		b.WriteString(raw[at:s.start])
		b.WriteString(s.placeholder())
		at = s.end
	}
	b.WriteString(raw[at:])
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
