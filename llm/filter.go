package llm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// A candidate is a finding and the index in run.parts of the part of the change
// in which it was found.
type candidate struct {
	review.Finding
	part    int
	same    []candidate // the same remark at its other places
	refuted bool        // by the verification pass
	// byRedaction is set for a committed secret, which no model verifies.
	byRedaction bool
}

// filter returns the findings that are reported, the worst first, and what their verification
// did. It counts the others by reason.
func (run *run) filter(ctx context.Context) ([]candidate, *review.Check, error) {
	run.found = append(run.found, run.committedSecrets()...)
	sortCandidates(run.found)
	found, err := run.dropMarkedWrong(ctx, run.cfg.dropMinor(run.found, run.counts))
	if err != nil {
		return nil, nil, err
	}
	found, duplicates := merge(found)
	run.counts.drop(review.DropDuplicate, duplicates)
	found, check, err := run.verify(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	run.counts.drop(review.DropOverLimit, len(found)-run.cfg.MaxFindings)
	return found[:min(len(found), run.cfg.MaxFindings)], check, nil
}

// sortCandidates sorts by severity, worst first, then by place, so that the
// result does not depend on the order of the answers.
func sortCandidates(found []candidate) {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.StartLine, b.StartLine),
			cmp.Compare(a.EndLine, b.EndLine),
			cmp.Compare(a.Title, b.Title),
			cmp.Compare(a.Category, b.Category),
			cmp.Compare(b.Confidence, a.Confidence),
			cmp.Compare(a.Explanation, b.Explanation),
		)
	})
}

// withNitpicks stands below all severities in [Config.MinSeverity].
const withNitpicks review.Severity = "nitpick"

// dropMinor removes, and counts, the findings that are not configured to be
// reported.
func (c Config) dropMinor(found []candidate, counts remarkCounts) []candidate {
	return slices.DeleteFunc(found, func(f candidate) bool {
		switch {
		case c.MinSeverity == withNitpicks:
			return false
		case f.Severity.Rank() > c.MinSeverity.Rank():
			counts.drop(review.DropMinor, 1)
		case f.Severity == review.SeverityLow && f.Category == review.CategoryMaintainability:
			counts.drop(review.DropNitpick, 1)
		default:
			return false
		}
		return true
	})
}

// dropMarkedWrong removes, and counts, the findings that are accepted to be wrong.
func (run *run) dropMarkedWrong(ctx context.Context, found []candidate) ([]candidate, error) {
	if run.options.FindWrong == nil {
		return found, nil
	}
	findings := make([]review.Finding, len(found))
	for i, f := range found {
		findings[i] = f.Finding
	}
	wrong, err := run.options.FindWrong(ctx, findings)
	if err != nil {
		return nil, fmt.Errorf("read the findings that are accepted to be wrong: %w", err)
	}
	var rest []candidate
	for i, f := range found {
		if !wrong[i] {
			rest = append(rest, f)
		}
	}
	run.counts.drop(review.DropWrong, len(found)-len(rest))
	return rest, nil
}

// merge merges equal findings: it keeps the worst of several at one place, and makes one
// finding with all places of the same remark at several places. found is sorted.
func merge(found []candidate) (merged []candidate, duplicates int) {
	for _, f := range found {
		i := slices.IndexFunc(merged, func(m candidate) bool { return repeats(m.Finding, f.Finding) || sameRemark(m.Finding, f.Finding) })
		switch {
		case i < 0:
			merged = append(merged, f)
		case repeats(merged[i].Finding, f.Finding):
			duplicates++
		default:
			merged[i].Places = append(merged[i].Places, f.Place())
			merged[i].same = append(merged[i].same, f)
		}
	}
	for _, m := range merged {
		slices.SortFunc(m.Places, func(a, b review.Place) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.StartLine, b.StartLine))
		})
	}
	return merged, duplicates
}

// repeats reports whether f has the same statement as m at one of m's places.
func repeats(m, f review.Finding) bool {
	return slices.ContainsFunc(append([]review.Place{m.Place()}, m.Places...), func(p review.Place) bool {
		overlaps := p.Path == f.Path && p.StartLine <= f.EndLine && f.StartLine <= p.EndLine
		sameLines := p.StartLine == f.StartLine && p.EndLine == f.EndLine && f.StartLine > 0
		return overlaps && (sameLines && m.Category == f.Category || similar(m.Title, f.Title))
	})
}

// sameRemark reports whether m and f are the same remark at two places.
func sameRemark(m, f review.Finding) bool {
	return m.Category == f.Category && (slices.Equal(titleWords(m.Title), titleWords(f.Title)) ||
		m.Quote != "" && squeeze(m.Quote) == squeeze(f.Quote) && similar(m.Title, f.Title))
}

// similar reports whether two titles share at least half of their words.
func similar(a, b string) bool {
	one, two := titleWords(a), titleWords(b)
	shared := 0
	for _, w := range one {
		if slices.Contains(two, w) {
			shared++
		}
	}
	return 2*shared >= len(one)+len(two)-shared
}

// titleWords returns the distinct words of a title, sorted. Numbers, such as lines
// and sizes, are ignored.
func titleWords(title string) []string {
	all := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	if len(all) == 0 {
		return []string{title}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
