package llm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
)

// draft returns the result of a run whose calls have all succeeded: the filtered
// findings, and what was read.
func (run *run) draft(ctx context.Context) (review.Draft, error) {
	run.found = append(run.found, run.committedSecrets()...)
	sortCandidates(run.found)
	found, err := run.dropMarkedWrong(ctx, run.cfg.dropMinor(run.found, run.counts))
	if err != nil {
		return review.Draft{}, err
	}
	found, duplicates := merge(found)
	run.counts.drop(review.DropDuplicate, duplicates)
	found, check, err := run.verify(ctx, found)
	if err != nil {
		return review.Draft{}, err
	}
	run.counts.drop(review.DropOverLimit, len(found)-run.cfg.MaxFindings)
	var final []review.Finding
	for _, c := range found[:min(len(found), run.cfg.MaxFindings)] {
		c.Rule = run.guides.packsOf(c.Path)
		final = append(final, run.checkFix(c.Finding))
	}
	d := review.Draft{
		Record: review.Record{
			Model: run.model, PromptDigest: run.promptDigest(), Usage: run.usage, Anchors: run.counts.Anchors, Dropped: run.counts.Dropped,
			FixesDropped: run.counts.Fixes, Check: check, Switches: run.switches, Proofs: run.proofs, Rules: run.sources,
		},
		Findings: final, Coverage: run.finishCoverage(), Unread: run.unread, Context: run.context,
	}
	return d, nil
}

// checkFix checks the replacement of f against what the sealed change has of its file, and
// counts it if it fails. The finding stays.
func (run *run) checkFix(f review.Finding) review.Finding {
	var known fix.Text
	files := 0
	for _, file := range run.change.Files {
		if file.Path.String() == f.Path {
			known = fix.Read(file.Diff.String())
			files++
		}
	}
	for _, b := range run.change.Context {
		if b.Path.String() == f.Path && len(known) > 0 {
			known.Add(b.Line, b.Text.String())
		}
	}
	if files > 1 { // redaction gave them the same path
		known = fix.Text{}
	}
	secrets := func(s string) int { // after redaction
		masked, err := run.guard.String(s)
		if err != nil {
			return math.MaxInt
		}
		return len(redactedMark.FindAllStringIndex(masked.String(), -1))
	}
	f, why := known.Check(f, secrets)
	if why != "" {
		run.counts.Fixes[why]++
	}
	return f
}

// finishCoverage returns the coverage with what was not shown to the model as it is in the depot.
func (run *run) finishCoverage() review.Coverage {
	for i, f := range run.change.Files {
		covered := &run.coverage[i]
		for _, h := range f.Hidden {
			covered.Mark(h.First, h.Last, review.LinesHidden, review.SkipMaskedCode)
		}
		if f.Charset != "" && run.files[i] != nil { // only lines with other characters than ASCII were guessed
			for l := range review.DiffLines(f.Diff.String()) {
				if strings.ContainsFunc(l.Text, func(r rune) bool { return r > unicode.MaxASCII }) {
					covered.Mark(l.Row, l.Row, review.LinesHidden, review.SkipGuessed)
				}
			}
		}
		covered.Join()
	}
	return run.coverage
}

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

// sortCandidates sorts by severity, worst first, then by place, so that the
// result does not depend on the order of the answers.
func sortCandidates(found []candidate) {
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

// rank returns 0 for the worst severity and -1 for an unknown one.
func rank(s review.Severity) int { return slices.Index(review.Severities(), s) }

// dropMinor removes, and counts, the findings that are not configured to be
// reported.
func (c Config) dropMinor(found []candidate, counts remarkCounts) []candidate {
	return slices.DeleteFunc(found, func(f candidate) bool {
		switch {
		case rank(f.Severity) > rank(c.MinSeverity):
			counts.drop(review.DropMinor, 1)
		case !c.Nitpicks && f.Severity == review.SeverityLow && f.Category == review.CategoryMaintainability:
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
