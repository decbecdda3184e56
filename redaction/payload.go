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

// A payload is the text that is sent together: a secret found in one part is masked in all.
type payload struct {
	*Pipeline
	// scope separates tags: the same secret has another tag in another scope.
	scope string
	parts []*part
	// known are the secrets found so far.
	known values
}

// A part is one text of a payload and where its redacted form goes.
type part struct {
	raw  string
	out  *Text
	lang *lex.Language
	// isDiff is set for a diff, isWhole if the whole file was read, too.
	isDiff, isWhole bool
	// What was read in raw.
	scanned
	// isRead is set if nothing more is found in the text as it would be sent.
	isRead bool
}

// add appends a text. It replaces invalid UTF-8 by U+FFFD before the search, so
// that no encoder changes the text afterwards.
func (pl *payload) add(raw string, out *Text) *part {
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
	}
	pt := &part{raw: raw, out: out, lang: lex.Unknown}
	pl.parts = append(pl.parts, pt)
	return pt
}

// addFile appends the diff of a file, and masks in it what the whole file reveals. Secrets outside of the
// hunks become known values. It returns the new text of the file, if it is known, and what was found in it.
func (pl *payload) addFile(f review.File, out *Text) (pt *part, after string, found []span, err error) {
	pt = pl.add(f.Diff, out)
	pt.isDiff, pt.lang, pt.isWhole = true, lex.Of(f.DepotPath), len(f.Whole) > 0
	if !pt.isWhole {
		return pt, "", nil, nil
	}
	sides, err := pt.sidesOf(f)
	if err != nil {
		return nil, "", nil, err
	}
	var hits []lex.Hit
	for i, s := range sides {
		hits = pl.engine.hits(s.text, s.same, hits)
		of := pl.scanWhole(s.text, hits, pt.lang)
		pt.spans, pt.hidden = append(pt.spans, s.project(of.spans)...), append(pt.hidden, s.project(of.hidden)...)
		if i == 0 {
			after, found = s.text, of.spans
		}
	}
	pt.spans, pt.hidden = merge(pt.spans), merge(pt.hidden)
	return pt, after, found, nil
}

// sidesOf returns the sides of the part, the diff of f: of the whole file if it is known.
func (pt *part) sidesOf(f review.File) ([]side, error) {
	if len(f.Whole) == 0 {
		return sidesOf(pt.raw, true), nil
	}
	text, err := f.Whole.Text()
	if err != nil {
		return nil, err
	}
	return wholeSides(pt.raw, strings.ToValidUTF8(text, "\uFFFD"))
}

// scanWhole reads a whole file, whose words are hits. Its secrets become known values.
func (pl *payload) scanWhole(text string, hits []lex.Hit, l *lex.Language) scanned {
	of := pl.engine.scan(sidesOf(text, false), hits, l)
	pl.known.add(of.spans, isSpecific)
	return of
}

// maxPasses bounds how often a payload is read. Passes repeat until one finds nothing,
// because a placeholder can change how the text around it is read.
const maxPasses = 6

// redact masks every part of pl and sets their outs, all or, with an error, none.
func (pl *payload) redact() (err error) {
	defer recoverBlocked(&err)
	size := 0
	for _, pt := range pl.parts {
		if size += len(pt.raw); !readable(pt.raw) {
			return failure.Errorf(failure.RedactionBlocked, "redact %s: a part of %d bytes is not text", pl.scope, len(pt.raw))
		}
	}
	if size > pl.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "redact %s: %d bytes are more than the limit of %d", pl.scope, size, pl.maxBytes)
	}
	pl.spread() // what whole files revealed
	for range maxPasses {
		more := false
		for _, pt := range pl.parts {
			more = pt.read(pl.engine) || more
		}
		if more {
			pl.spread()
			continue
		}
		for _, pt := range pl.parts {
			*pt.out = pl.text(pt.rendered())
		}
		return nil
	}
	return failure.Errorf(failure.RedactionBlocked, "redact %s: still finding secrets after %d passes", pl.scope, maxPasses)
}

// read reads the part as it would be sent, and reports whether there is more to mask.
func (pt *part) read(e *engine) bool {
	if pt.isRead {
		return false
	}
	text := pt.rendered()
	sides := sidesOf(text, pt.isDiff)
	if pt.isWhole {
		for i := range sides {
			sides[i].sections = nil // a hunk does not begin within a key that is not known
		}
	}
	of := e.scan(sides, e.hits(text, nil, nil), pt.lang)
	if len(pt.spans) == 0 {
		pt.left = of.left
	}
	pt.hidden = merge(append(pt.hidden, pt.inRaw(of.hidden)...))
	pt.isRead = len(of.spans) == 0
	pt.spans = merge(append(pt.inRaw(of.spans), pt.spans...))
	return !pt.isRead
}

// rendered returns the text with placeholders in place of the spans.
func (pt *part) rendered() string {
	if len(pt.spans) == 0 {
		return pt.raw
	}
	var b strings.Builder
	b.Grow(len(pt.raw))
	at := 0
	for _, s := range pt.spans {
		b.WriteString(pt.raw[at:s.start])
		b.WriteString(s.placeholder())
		at = s.end
	}
	b.WriteString(pt.raw[at:])
	return b.String()
}

// inRaw returns disjoint spans of the rendered text, in order, as spans of the raw text. An end within a placeholder
// is the end of what it masks.
func (pt *part) inRaw(found []span) []span {
	out := make([]span, 0, len(found))
	at, shift, last := 0, 0, 0 // shift is raw minus rendered behind last, the end of pt.spans[at-1]
	raw := func(offset int) int {
		for at < len(pt.spans) && pt.spans[at].start-shift < offset {
			masked := pt.spans[at]
			shift += masked.end - masked.start - len(masked.placeholder())
			at, last = at+1, masked.end
		}
		return max(last, offset+shift)
	}
	for _, s := range found {
		s.start, s.end = raw(s.start), raw(s.end)
		out = append(out, s)
	}
	return out
}

// spread masks what was found in one part in all of them.
func (pl *payload) spread() {
	for _, pt := range pl.parts {
		pl.known.add(pt.spans, isUnmistakable)
	}
	tag := pl.tagger(pl.scope)
	for _, pt := range pl.parts {
		pt.maskKnown(&pl.known)
		for i := range pt.spans {
			if s := &pt.spans[i]; s.tag == "" {
				s.tag = tag(s.value)
			}
		}
	}
}

// counts returns how many places were masked, by class. Neighboring lines count once.
func (pl *payload) counts() (out []review.Redaction) {
	byClass := map[string]int{}
	for _, pt := range pl.parts {
		for i, s := range pt.spans {
			if i == 0 || s.Class != pt.spans[i-1].Class || strings.Count(pt.raw[pt.spans[i-1].end:s.start], "\n") != 1 {
				byClass[s.Class]++
			}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		out = append(out, review.Redaction{Class: class, Count: byClass[class]})
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
var controlByte = lex.SetOf("\x00\x01\x02\x03\x04\x05\x06\a\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e\x1f")
