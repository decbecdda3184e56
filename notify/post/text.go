package post

import (
	"cmp"
	"fmt"
	"slices"
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
