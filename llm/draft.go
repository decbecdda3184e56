package llm

import (
	"context"

	"github.com/criticizer/criticizer/review"
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
	d := review.Draft{
		Model: run.model, PromptDigest: run.promptDigest(), Usage: run.usage,
		Anchors: run.counts.Anchors, Dropped: run.counts.Dropped, Check: check, Proofs: run.proofs, Context: run.context, Rules: run.sources,
	}
	for _, c := range found[:min(len(found), run.cfg.MaxFindings)] {
		c.Rule = run.guides.packsOf(c.Path)
		d.Findings = append(d.Findings, c.Finding)
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
	case f.cut:
		return review.SkipLongLine
	}
	return ""
}
