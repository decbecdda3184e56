package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// CollectBatches collects the results of batches that have ended. Each job gets a
// status of its own (rewrite 9).
func (a *Activities) CollectBatches(ctx context.Context) error { return a.collect(ctx, runOf(ctx)) }

func (a *Activities) collect(ctx context.Context, runID string) error {
	deadline, err := a.deadline(ctx, runID)
	if err != nil {
		return err
	}
	claim := rewrite.NewClaim(runID, a.parts.Name)
	for room := a.cfg.Run.MaxCollectedPerRun(); room > 0 && time.Now().Before(deadline) && ctx.Err() == nil; {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitted, a.cfg.Lease)
		if err != nil || !ok {
			return err
		}
		decided, err := a.collectOne(ctx, claim, s)
		if err != nil {
			return fmt.Errorf("collect batch %s: %w", s.ID, err)
		}
		room -= decided
	}
	return nil
}

// collectOne polls one batch and returns how many of its jobs were decided.
func (a *Activities) collectOne(ctx context.Context, claim rewrite.Claim, s rewrite.Submission) (int, error) {
	at, err := a.parts.Provider.Poll(ctx, s.Routing, s.ProviderID)
	switch {
	case failure.ClassOf(err) == failure.NotFound: // the provider deletes old batches
		return a.conclude(ctx, claim, s, rewrite.ProviderBatch{Status: rewrite.BatchExpired}, failure.NotFound)
	case err != nil:
		a.lg.WarnContext(ctx, "poll of a batch failed", "batch_id", s.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		return 0, a.parts.Queue.RecordPoll(ctx, claim, s.ID, s.ProviderStatus, false)
	case at.Status.Final():
		return a.conclude(ctx, claim, s, at, failure.UpstreamInternal)
	case s.Age > a.cfg.BatchTimeout+cancelTimeout:
		return a.conclude(ctx, claim, s, at, failure.UpstreamUnavailable)
	}
	return 0, a.parts.Queue.RecordPoll(ctx, claim, s.ID, at.Status, a.cancelLate(ctx, claim, s))
}

// cancelTimeout is how long a provider may take to cancel a batch.
const cancelTimeout = 2 * time.Hour

// cancelLate cancels a batch that has exceeded its time limit and reports whether the
// provider was asked to.
func (a *Activities) cancelLate(ctx context.Context, claim rewrite.Claim, s rewrite.Submission) bool {
	if s.Age <= a.cfg.BatchTimeout || s.CancelAskedAt != nil {
		return s.CancelAskedAt != nil
	}
	err := a.parts.Provider.Cancel(ctx, s.Routing, s.ProviderID)
	if err != nil {
		a.lg.WarnContext(ctx, "cancellation of a late batch failed", "batch_id", s.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
	}
	return err == nil
}

// conclude decides about every job of a batch that has ended. Jobs that the batch does
// not mention fail with class missing.
func (a *Activities) conclude(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, at rewrite.ProviderBatch, missing failure.Class) (int, error) {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	c := newCollection(a, claim, s, jobs)
	for _, file := range []string{at.OutputFileID, at.ErrorFileID} {
		if err := c.read(ctx, file); err != nil {
			return c.decided, err
		}
	}
	c.decideProblems(jobs, at.Problems)
	for _, job := range c.open {
		c.failed = append(c.failed, a.failed(job, missing))
	}
	if err := c.flush(ctx); err != nil {
		return c.decided, err
	}
	a.lg.InfoContext(ctx, "batch collected", "batch_id", s.ID, "run_id", claim.RunID, "provider_status", at.Status, "jobs", c.decided)
	if err := a.parts.Queue.EndBatch(ctx, s.ID, rewrite.Collected, at.Status); err != nil {
		return c.decided, err
	}
	a.deleteFiles(ctx, s, at)
	return c.decided, nil
}

// deleteFiles deletes a batch's files at the provider: they contain messages. A file
// that cannot be deleted expires there.
func (a *Activities) deleteFiles(ctx context.Context, s rewrite.Submission, at rewrite.ProviderBatch) {
	for _, file := range []string{s.InputFileID, at.OutputFileID, at.ErrorFileID} {
		if file == "" {
			continue
		}
		if err := a.parts.Provider.Delete(ctx, s.Routing, file); err != nil {
			a.lg.WarnContext(ctx, "deletion of a batch's file failed", "batch_id", s.ID, "error_class", failure.ClassOf(err))
		}
	}
}
