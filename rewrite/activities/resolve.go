package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// skew is how far the provider's clock may be from ours.
const skew = time.Hour

// resolve decides about submissions whose worker is gone: it finds the batch at
// the provider by its submission key, or learns that there is none. Only
// submissions whose lease is over come up, so no creation is under way any more.
func (w *Working) resolve(ctx context.Context, runID string) error {
	claim := rewrite.NewClaim(runID, w.parts.Name)
	for ctx.Err() == nil {
		s, ok, err := w.parts.Queue.Lease(ctx, claim, rewrite.Submitting, w.cfg.Lease)
		if err != nil || !ok {
			return err
		}
		if err := w.resolveOne(ctx, runID, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *Working) resolveOne(ctx context.Context, runID string, s rewrite.Submission) error {
	if s.CreateBegunAt == nil { // the provider has at most a file, which expires there
		return w.parts.Queue.AbandonSubmission(ctx, runID, s.ID, 0, rewrite.Overflow)
	}
	found, err := w.parts.Batches.Find(ctx, s.Routing, s.ID, s.CreateBegunAt.Add(-skew))
	switch {
	case err != nil: // the next run asks again; until then nobody may submit these jobs
		w.lg.WarnContext(ctx, "a lost batch could not be looked for", "batch_id", s.ID, "run_id", runID, "error_class", failure.ClassOf(err))
		return nil
	case len(found) == 0:
		w.lg.InfoContext(ctx, "a lost batch was never created", "batch_id", s.ID, "run_id", runID)
		return w.neverCreated(ctx, runID, s)
	}
	w.lg.InfoContext(ctx, "a lost batch was found again", "batch_id", s.ID, "run_id", runID, "provider_batch_id", found[0].ID)
	return w.parts.Queue.MarkSubmitted(ctx, runID, s.ID, found[0])
}

// neverCreated queues the jobs of a batch that was not created. If the provider
// was asked and failed, that was an attempt; if our worker died, it was none.
func (w *Working) neverCreated(ctx context.Context, runID string, s rewrite.Submission) error {
	if s.CreateError == "" {
		return w.parts.Queue.AbandonSubmission(ctx, runID, s.ID, 0, rewrite.Overflow)
	}
	jobs, err := w.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return err
	}
	var verdicts []rewrite.Verdict
	for _, job := range jobs {
		if job.Status == rewrite.Processing {
			verdicts = append(verdicts, w.failed(job, failure.Class(s.CreateError)))
		}
	}
	if err := w.settle(ctx, rewrite.Holder{RunID: runID, BatchID: s.ID}, verdicts...); err != nil {
		return err
	}
	return w.parts.Queue.EndBatch(ctx, s.ID, rewrite.Abandoned, "")
}
