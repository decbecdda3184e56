package llm

import (
	"context"
	"math"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
)

// draft returns the result of a run whose calls have all succeeded: the filtered
// findings, and which files were read.
func (run *run) draft(ctx context.Context) (review.Draft, error) {
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
			FixesDropped: run.counts.Fixes, Check: check, Proofs: run.proofs, Rules: run.sources,
		},
		Findings: final, Context: run.context,
	}
	for i, f := range run.change.Files {
		if reason := run.omission(i); reason != "" {
			d.Omissions = append(d.Omissions, review.Omission{Path: f.Path.String(), Reason: reason})
		} else {
			d.FilesRead++
		}
	}
	for _, model := range run.cfg.Fallbacks {
		if s := run.switches[model]; s != nil {
			d.Switches = append(d.Switches, *s)
		}
	}
	return d, nil
}

// checkFix checks the replacement of f against what the sealed change has of its file, and
// counts it if it fails. The finding stays.
func (run *run) checkFix(f review.Finding) review.Finding {
	var known fix.Text
	for _, file := range run.change.Files {
		if file.Path.String() == f.Path && known == nil {
			known = fix.Read(file.Diff.String())
		} else if file.Path.String() == f.Path {
			known = fix.Text{} // redaction gave two files the same path
		}
	}
	if len(known) > 0 {
		for _, b := range run.change.Context {
			if b.Path.String() == f.Path {
				known.Add(b.Line, b.Text.String())
			}
		}
	}
	f, why := known.Check(f, run.secrets)
	if why != "" {
		run.counts.Fixes[why]++
	}
	return f
}

// secrets returns the number of placeholders in s after redaction, math.MaxInt if it
// cannot be redacted.
func (run *run) secrets(s string) int {
	masked, err := run.guard.String(s)
	if err != nil {
		return math.MaxInt
	}
	return len(redactedMark.FindAllStringIndex(masked.String(), -1))
}

// omission returns why file i was not read in full, or "".
func (run *run) omission(i int) review.SkipReason {
	f := run.files[i]
	switch {
	case run.change.Files[i].Skipped != "":
		return run.change.Files[i].Skipped
	case f == nil:
		return review.SkipUnchanged
	case run.omitted[f] != "":
		return run.omitted[f]
	case len(run.change.Files[i].Hidden) > 0:
		return review.SkipMaskedCode
	case f.cut:
		return review.SkipLongLine
	}
	return ""
}
