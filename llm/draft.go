package llm

import (
	"context"
	"math"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
)

// draft returns the result of a run whose calls have all succeeded: the filtered
// findings, and what was read.
func (run *run) draft(ctx context.Context) (review.Draft, error) {
	found, check, err := run.filter(ctx)
	if err != nil {
		return review.Draft{}, err
	}
	var final []review.Finding
	for _, c := range found {
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
