package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// skew bounds the difference between the provider's clock and ours.
const skew = time.Hour

// resolve decides about submissions whose worker was lost: it searches the provider for
// the batch by its submission key and its input file. It gets only submissions whose lease has expired, so
// no creation is in flight.
func (a *Activities) resolve(ctx context.Context, runID string) error {
	claim := rewrite.NewClaim(runID, a.parts.Name)
	for ctx.Err() == nil {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitting, a.cfg.Lease)
		if err != nil || !ok {
			return err
		}
		if err := a.resolveOne(ctx, runID, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *Activities) resolveOne(ctx context.Context, runID string, s rewrite.Submission) error {
	if s.CreateBegunAt == nil { // the provider has at most a file, which expires there
		return a.neverCreated(ctx, runID, s)
	}
	found, err := a.parts.Provider.Find(ctx, s.Routing, s.ID, s.InputFileID, s.CreateBegunAt.Add(-skew))
	switch {
	case err != nil && s.Age <= a.cfg.BatchTimeout: // the next run searches again; until then the jobs stay bound
		a.lg.WarnContext(ctx, "search for a lost batch failed", "batch_id", s.ID, "run_id", runID, "error_class", failure.ClassOf(err))
		return nil
	case err != nil:
		s.CreateError = string(failure.ClassOf(err))
		return a.neverCreated(ctx, runID, s)
	case len(found) == 0:
		a.lg.InfoContext(ctx, "lost batch was never created", "batch_id", s.ID, "run_id", runID)
		return a.neverCreated(ctx, runID, s)
	}
	a.lg.InfoContext(ctx, "lost batch found", "batch_id", s.ID, "run_id", runID, "provider_batch_id", found[0].ID)
	return a.parts.Queue.MarkSubmitted(ctx, runID, s.ID, found[0])
}

// neverCreated queues the jobs of a batch that was not created, or is not searched any
// more. It counts an attempt if the provider returned an error other than a rate limit, and
// none if the worker crashed.
func (a *Activities) neverCreated(ctx context.Context, runID string, s rewrite.Submission) error {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return err
	}
	var verdicts []rewrite.Verdict
	for _, job := range jobs {
		if job.Status != rewrite.Processing {
			continue
		}
		v := rewrite.Verdict{JobID: job.ID, Status: rewrite.Queued, Attempts: job.AttemptCount, Error: rewrite.Overflow}
		if s.CreateError != "" {
			v = a.unsubmitted(job, failure.Class(s.CreateError))
		}
		verdicts = append(verdicts, v)
	}
	if err := a.settle(ctx, rewrite.Holder{RunID: runID, BatchID: s.ID}, verdicts...); err != nil {
		return err
	}
	return a.parts.Queue.EndBatch(ctx, s.ID, rewrite.Abandoned, "")
}
