package post

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Worst returns the limit worst findings of r and how many more there are. It
// sorts by severity, path and line.
func Worst(r review.Report, limit int) (findings []review.Finding, more int) {
	findings = slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b review.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.StartLine, b.StartLine))
	})
	shown := min(len(findings), limit)
	return findings[:shown], len(findings) - shown
}

// rank orders severities, worst first and unknown ones last.
func rank(s review.Severity) int {
	if i := slices.Index(review.Severities(), s); i >= 0 {
		return i
	}
	return len(review.Severities())
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

// Outcome returns the outcome of r in a few words. Only a clean review by a model reads
// as clean.
func Outcome(r review.Report) string {
	if r.StandIn {
		return fmt.Sprintf("read by a stand-in, not by a language model; findings: %d", len(r.Findings))
	}
	switch r.Outcome {
	case review.OutcomeClean:
		return "no findings"
	case review.OutcomeFindings:
		return fmt.Sprintf("findings: %d", len(r.Findings))
	case review.OutcomePartial:
		return fmt.Sprintf("partly reviewed, findings in the reviewed part: %d", len(r.Findings))
	}
	return "not reviewed"
}
