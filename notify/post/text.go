package post

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Worst returns the limit worst findings of r and how many more there are. It
// sorts by severity, path and line.
func Worst(r review.Report, limit int) (findings []review.Finding, more int) {
	findings = slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b review.Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(a.Path, b.Path), cmp.Compare(a.StartLine, b.StartLine))
	})
	shown := min(len(findings), limit)
	return findings[:shown], len(findings) - shown
}

// FirstLine returns the first line of a description that is not blank, of at most limit
// characters.
func FirstLine(description string, limit int) string {
	for l := range strings.Lines(strings.ReplaceAll(description, "\r", "\n")) {
		if l := plain.Line(l, limit); l != "" {
			return l
		}
	}
	return "(no description)"
}

// maxPath bounds the path in a position.
const maxPath = 300

// Position returns a place as path:line or path:first-last, or only the path if it has no
// line.
func Position(p review.Place) string {
	path := plain.Line(p.Path, maxPath)
	switch {
	case p.StartLine < 1:
		return path
	case p.EndLine <= p.StartLine:
		return fmt.Sprintf("%s:%d", path, p.StartLine)
	}
	return fmt.Sprintf("%s:%d-%d", path, p.StartLine, p.EndLine)
}

// Outcome returns the outcome of r in a few words, and whether a model has read the change. Only
// a clean review by a model reads as clean.
func Outcome(r review.Report) string {
	if r.StandIn {
		return "Read by a stand-in, not by a language model, " + Count(len(r.Findings), "finding")
	}
	return Headline(r)
}

// Headline returns the outcome of r in a few words.
func Headline(r review.Report) string {
	findings := Count(len(r.Findings), "finding")
	switch r.Outcome {
	case review.OutcomeClean:
		if credited, _ := r.Tally().In(review.LinesCredited); r.Tally().Begun+credited == 0 {
			return "Nothing to review"
		}
		return "No findings"
	case review.OutcomeFindings:
		return findings
	case review.OutcomePartial:
		if len(r.Findings) == 0 {
			findings = "nothing found"
		}
		return "Partly reviewed, " + findings + " in the reviewed part"
	}
	return "Not reviewed"
}

// Count returns "1 file" or "3 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
