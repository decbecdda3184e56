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

// A candidate is a finding with the part of the change it was found in, as an
// index of run.parts.
type candidate struct {
	review.Finding
	part int
	// refuted is set by a second look.
	refuted bool
}

// inOrder sorts candidates, worst first, then by place, so that the result does
// not depend on which call was answered first.
func inOrder(found []candidate) {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(rank(a.Severity), rank(b.Severity)),
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

// rank is smaller for the worse severity.
func rank(s review.Severity) int { return slices.Index(review.Severities(), s) }

// minor says why f is not worth a mail under c, empty if it is.
func (c Config) minor(f review.Finding) review.DropReason {
	switch {
	case rank(f.Severity) > rank(c.MinSeverity):
		return review.DropMinor
	case !c.Nitpicks && f.Severity == review.SeverityLow && f.Category == review.CategoryMaintainability:
		return review.DropNitpick
	}
	return ""
}

// worthwhile leaves out, and counts, what is not worth a mail.
func (c Config) worthwhile(found []candidate, counts tally) []candidate {
	return slices.DeleteFunc(found, func(f candidate) bool {
		why := c.minor(f.Finding)
		if why != "" {
			counts.drop(why, 1)
		}
		return why != ""
	})
}

// heed leaves out, and counts, what readers have marked wrong.
func (run *run) heed(ctx context.Context, found []candidate) ([]candidate, error) {
	if run.options.FindWrong == nil {
		return found, nil
	}
	prints := make([]string, len(found))
	for i, f := range found {
		prints[i] = f.Fingerprint()
	}
	wrong, err := run.options.FindWrong(ctx, prints)
	if err != nil {
		return nil, fmt.Errorf("read what was marked wrong: %w", err)
	}
	kept := slices.DeleteFunc(found, func(f candidate) bool { return slices.Contains(wrong, f.Fingerprint()) })
	run.counts.drop(review.DropWrong, len(prints)-len(kept))
	return kept, nil
}

// merge makes one finding of those that say the same: of several at one place
// the worst stays, and one remark at several places becomes one finding that
// names them all. found is in order.
func merge(found []candidate) (kept []candidate, repeated int) {
next:
	for _, f := range found {
		for i := range kept {
			switch k := &kept[i]; {
			case repeats(k.Finding, f.Finding):
				repeated++
				continue next
			case sameRemark(k.Finding, f.Finding):
				k.Places = append(k.Places, f.Place())
				continue next
			}
		}
		kept = append(kept, f)
	}
	for _, k := range kept {
		slices.SortFunc(k.Places, func(a, b review.Place) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.StartLine, b.StartLine))
		})
	}
	return kept, repeated
}

// repeats reports whether f says at one place of k what k says.
func repeats(k, f review.Finding) bool {
	for _, p := range append([]review.Place{k.Place()}, k.Places...) {
		if p.Path != f.Path || p.EndLine < f.StartLine || f.EndLine < p.StartLine {
			continue
		}
		exactly := p.StartLine == f.StartLine && p.EndLine == f.EndLine && f.StartLine > 0
		if exactly && k.Category == f.Category || alike(k.Title, f.Title) {
			return true
		}
	}
	return false
}

// sameRemark reports whether k and f are one remark at two places.
func sameRemark(k, f review.Finding) bool {
	if k.Category != f.Category {
		return false
	}
	return slices.Equal(words(k.Title), words(f.Title)) ||
		k.Quote != "" && squeeze(k.Quote) == squeeze(f.Quote) && alike(k.Title, f.Title)
}

// alike reports whether two titles share at least half of their words.
func alike(a, b string) bool {
	one, two := words(a), words(b)
	shared := 0
	for _, w := range one {
		if slices.Contains(two, w) {
			shared++
		}
	}
	return 2*shared >= len(one)+len(two)-shared
}

// words are the different words of a title, in alphabetical order. Numbers do
// not count: they are lines and sizes.
func words(title string) []string {
	all := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	if len(all) == 0 {
		return []string{title}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// capped leaves out, and counts, what is beyond the limit of one mail.
func (c Config) capped(found []candidate, counts tally) []candidate {
	counts.drop(review.DropOverLimit, len(found)-c.MaxFindings)
	return found[:min(len(found), c.MaxFindings)]
}
