package redaction

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

// A form is how the lines of a text are read.
type form int

const (
	formText form = iota // plain text, or a diff if it looks like one
	formDiff             // a unified diff: prefixes and hunk headers are structure
)

// A part is one text of a payload and where its redacted form goes.
type part struct {
	form form
	raw  string
	out  *Text
	// spans are the masked ranges of raw: sorted, disjoint, each within a line.
	spans []span
	// file is the name of the file of the text, or "". whole is set if the whole file was read.
	file  string
	whole bool
	// hidden are the ranges of raw that are in containers of secrets without an end, literals the
	// literals and comments of code.
	hidden, literals []span
}

// A payload is the text that is sent together.
type payload struct {
	// scope separates tags: the same secret has another tag in another scope.
	scope string
	parts []*part
	// known are the secrets found so far.
	known values
}

// add appends a text. It replaces invalid UTF-8 by U+FFFD before the search, so
// that no encoder changes the text afterwards.
func (pl *payload) add(f form, raw string, out *Text) {
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
	}
	pl.parts = append(pl.parts, &part{form: f, raw: raw, out: out})
}

// counts returns how many places were masked, by class. Neighboring lines count once.
func (pl *payload) counts() []review.Redaction {
	byClass := map[string]int{}
	for _, part := range pl.parts {
		for i, s := range part.spans {
			if i == 0 || s.Class != part.spans[i-1].Class || strings.Count(part.raw[part.spans[i-1].end:s.start], "\n") != 1 {
				byClass[s.Class]++
			}
		}
	}
	var out []review.Redaction
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		out = append(out, review.Redaction{Class: class, Count: byClass[class]})
	}
	return out
}

// maxPasses bounds how often a payload is read. Passes repeat until one finds nothing,
// because a placeholder can change how the text around it is read.
const maxPasses = 6

// redact masks every part of pl and sets their outs, all or, with an error, none.
func (p *Pipeline) redact(pl *payload) (err error) {
	defer recoverBlocked(&err)
	size := 0
	for _, part := range pl.parts {
		size += len(part.raw)
	}
	if size > p.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "redact %s: %d bytes are more than the limit of %d", pl.scope, size, p.maxBytes)
	}
	for _, part := range pl.parts {
		if !readable(part.raw) {
			return failure.Errorf(failure.RedactionBlocked, "redact %s: a part of %d bytes is not text", pl.scope, len(part.raw))
		}
	}
	if pl.known.found != nil { // from whole files
		p.spread(pl)
	}
	for range maxPasses {
		if !p.pass(pl) {
			for _, part := range pl.parts {
				*part.out = p.text(render(part.raw, part.spans))
			}
			return nil
		}
	}
	return failure.Errorf(failure.RedactionBlocked, "redact %s: still finding secrets after %d passes", pl.scope, maxPasses)
}

// pass reads the parts as they would be sent and reports whether it masked more.
func (p *Pipeline) pass(pl *payload) (more bool) {
	for _, part := range pl.parts {
		read := p.engine.scan(render(part.raw, part.spans), part.form, part.file, part.whole)
		part.hidden = append(part.hidden, part.inRaw(read.hidden)...)
		more = part.mask(read.spans) || more
	}
	if more {
		p.spread(pl)
	}
	return more
}

// spread masks what was found in one part in all of them.
func (p *Pipeline) spread(pl *payload) {
	for _, part := range pl.parts {
		pl.known.add(part.spans, isUnmistakable)
	}
	tag := p.tagger(pl.scope)
	for _, part := range pl.parts {
		part.maskKnown(&pl.known)
		for i := range part.spans {
			if s := &part.spans[i]; s.tag == "" {
				s.tag = tag(s.value)
			}
		}
	}
}

// mask adds spans of the rendered text to the part, and reports whether there
// were any. No span overlaps a placeholder.
func (pt *part) mask(found []span) bool {
	if len(found) == 0 {
		return false
	}
	if len(pt.spans) == 0 {
		pt.spans = found
		return true
	}
	c := collector{raw: pt.raw, spans: append(slices.Clone(pt.spans), pt.inRaw(found)...)}
	pt.spans = c.finish()
	return true
}

// inRaw returns the spans of the rendered text as spans of the raw text.
func (pt *part) inRaw(found []span) []span {
	out := make([]span, 0, len(found))
	at, shift := 0, 0 // shift is raw minus rendered before pt.spans[at]
	for _, s := range found {
		for at < len(pt.spans) && pt.spans[at].start-shift < s.end {
			masked := pt.spans[at]
			shift += masked.end - masked.start - len(masked.placeholder())
			at++
		}
		s.start, s.end = s.start+shift, s.end+shift
		out = append(out, s)
	}
	return out
}

// recoverBlocked turns a panic into an error that quotes nothing of the text.
func recoverBlocked(err *error) {
	if r := recover(); r != nil {
		*err = failure.Errorf(failure.RedactionBlocked, "redact: a detector panicked (%T)", r)
	}
}

// readable reports whether s is text. Text may have a NUL beside every byte, as
// in UTF-16, and up to 5 % other control characters.
func readable(s string) bool {
	nul, control := strings.Count(s, "\x00"), 0
	for i := lex.FirstIn(s, 0, &controlByte); i < len(s); i = lex.FirstIn(s, i+1, &controlByte) {
		control++
	}
	control -= nul
	if control*20 > len(s) || nul*2 > len(s)+2 {
		return false
	}
	return nul == 0 || nul*5 >= len(s)*2
}

// controlByte is 1 for the control characters that text does not use.
var controlByte = lex.SetOf("\x00\x01\x02\x03\x04\x05\x06\a\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e\x1f").Table()
