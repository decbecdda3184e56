package llm

import (
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Bounds of a finding's texts; a longer text is cut.
const (
	maxTitleBytes = 200
	maxTextBytes  = 4_000
)

// A tally counts what became of the model's remarks.
type tally struct {
	Anchors map[review.Anchor]int     `json:"anchors,omitempty"`
	Dropped map[review.DropReason]int `json:"dropped,omitempty"`
}

func newTally() tally {
	return tally{map[review.Anchor]int{}, map[review.DropReason]int{}}
}

func (t tally) add(other tally) {
	for a, n := range other.Anchors {
		t.Anchors[a] += n
	}
	for r, n := range other.Dropped {
		t.Dropped[r] += n
	}
}

// drop counts n remarks that were dropped, if any were.
func (t tally) drop(why review.DropReason, n int) {
	if n > 0 {
		t.Dropped[why] += n
	}
}

// findings turns the remarks on c into findings at places of our own
// reckoning, and counts those that are none.
func (c chunk) findings(remarks []remark) ([]review.Finding, tally) {
	var found []review.Finding
	counts := newTally()
	for _, m := range remarks {
		f, at, ok := c.place(m)
		if ok {
			counts.Anchors[at.anchor]++
		}
		if why := m.idle(at, ok); why != "" {
			counts.drop(why, 1)
			continue
		}
		found = append(found, review.Finding{
			Path:        f.path,
			StartLine:   at.start,
			EndLine:     at.end,
			Severity:    m.Severity,
			Category:    m.Category,
			Confidence:  m.Confidence,
			Title:       tidy(strings.Join(strings.Fields(m.Title), " "), maxTitleBytes),
			Explanation: tidy(m.Explanation, maxTextBytes),
			Suggestion:  tidy(m.Suggestion, maxTextBytes),
			Quote:       tidy(at.quote, maxTextBytes),
			Anchor:      at.anchor,
		})
	}
	return found, counts
}

// idle says why m is no finding whatever it says, empty if it may be one. What
// the change does not touch is only worth a mail if it is severe.
func (m remark) idle(at place, shown bool) review.DropReason {
	switch {
	case !shown:
		return review.DropUnknownPath
	case m.aboutMarker():
		return review.DropMarker
	case at.anchor == review.AnchorContext && !severe(m.Severity):
		return review.DropOutside
	case at.quote != "" && squeeze(withoutHeads(m.Suggestion)) == squeeze(at.quote):
		return review.DropNoChange
	}
	return ""
}

func severe(s review.Severity) bool {
	return s == review.SeverityCritical || s == review.SeverityHigh
}

func tidy(s string, n int) string {
	s, _ = clip(strings.Trim(s, "\r\n"), n, "text")
	return s
}

// place finds the file and the lines m is about. Redaction can give two files
// one path; the quote tells them apart.
func (c chunk) place(m remark) (f *file, at place, ok bool) {
	for _, s := range c.named(m.Path) {
		here := anchor(s.hunks, withoutHeads(m.Quote), m.Line)
		if f == nil || at.start == 0 && here.start != 0 {
			f, at = s.file, here
		}
	}
	return f, at, f != nil
}

// named returns the sections whose path is path. Models shorten paths; a part
// that begins after a slash will do if no two files end in it.
func (c chunk) named(path string) []section {
	var exact, ending []section
	for _, s := range c {
		switch {
		case s.file.shown == path:
			exact = append(exact, s)
		case strings.HasSuffix(s.file.shown, "/"+strings.TrimLeft(path, "/")):
			ending = append(ending, s)
		}
	}
	if len(exact) == 0 && len(ending) == 1 && path != "" {
		return ending
	}
	return exact
}
