package llm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Bounds of a finding's texts; a longer text is cut.
const (
	maxTitleBytes = 200
	maxTextBytes  = 4_000
)

// findings turns the remarks on c into findings at places of our own
// reckoning. Remarks on paths that c does not show are dropped and counted.
func (c chunk) findings(remarks []remark) (found []review.Finding, dropped int) {
	for _, m := range remarks {
		f, at, ok := c.place(m)
		if !ok {
			dropped++
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
		})
	}
	return found, dropped
}

func tidy(s string, n int) string {
	s, _ = clip(strings.Trim(s, "\r\n"), n, "text")
	return s
}

// place finds the file and the lines m is about. Redaction can give two files
// one path; the quote tells them apart.
func (c chunk) place(m remark) (f *file, at place, ok bool) {
	for _, s := range c.named(m.Path) {
		here := anchor(s.hunks, m.Quote, m.Line)
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

// inOrder sorts findings, worst first, then by place, and drops repeated ones.
func inOrder(found []review.Finding) []review.Finding {
	worst := review.Severities()
	slices.SortFunc(found, func(a, b review.Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(worst, a.Severity), slices.Index(worst, b.Severity)),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.StartLine, b.StartLine),
			cmp.Compare(a.EndLine, b.EndLine),
			cmp.Compare(a.Title, b.Title),
			cmp.Compare(a.Category, b.Category),
			cmp.Compare(b.Confidence, a.Confidence),
			cmp.Compare(a.Explanation, b.Explanation),
		)
	})
	return slices.CompactFunc(found, func(a, b review.Finding) bool {
		return a.Path == b.Path && a.StartLine == b.StartLine && a.EndLine == b.EndLine &&
			a.Severity == b.Severity && a.Title == b.Title
	})
}
