package llm

import (
	"context"

	"github.com/criticizer/criticizer/review"
)

// conclude sums up a run whose calls have all succeeded: what is worth a mail of
// what was found, and for every file whether it was read.
func (run *run) conclude(ctx context.Context) (review.Draft, error) {
	inOrder(run.found)
	found, err := run.heed(ctx, run.cfg.worthwhile(run.found, run.counts))
	if err != nil {
		return review.Draft{}, err
	}
	found, repeated := merge(found)
	run.counts.drop(review.DropDuplicate, repeated)
	found, check, err := run.refute(ctx, found)
	if err != nil {
		return review.Draft{}, err
	}
	d := run.coverage()
	for _, c := range run.cfg.capped(found, run.counts) {
		c.Rule = run.guidelines.packOf(c.Path)
		d.Findings = append(d.Findings, c.Finding)
	}
	d.Model = run.model
	d.PromptDigest = run.digest()
	d.Usage = run.usage
	d.Anchors, d.Dropped = run.counts.Anchors, run.counts.Dropped
	d.Check = check
	for _, model := range run.cfg.Fallbacks {
		if s := run.another[model]; s != nil {
			d.Switches = append(d.Switches, *s)
		}
	}
	return d, nil
}

// coverage says of every file that it was read or why not.
func (run *run) coverage() (d review.Draft) {
	for i, f := range run.change.Files {
		if reason := run.omission(i); reason != "" {
			d.Omissions = append(d.Omissions, review.Omission{Path: f.Path.String(), Reason: reason})
		} else {
			d.FilesRead++
		}
	}
	return d
}

// omission says why file i was not read whole, empty if it was.
func (run *run) omission(i int) review.SkipReason {
	f := run.files[i]
	switch {
	case run.change.Files[i].Skipped != "":
		return run.change.Files[i].Skipped
	case f == nil:
		return review.SkipUnchanged
	case run.unseen[f] != "":
		return run.unseen[f]
	case f.cut:
		return review.SkipLongLine
	}
	return ""
}
