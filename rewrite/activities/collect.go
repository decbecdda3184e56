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

const (
	// cancelTimeout is how long a provider may take to cancel a batch, and how long a batch
	// that cannot be polled stays open after its time limit.
	cancelTimeout = 2 * time.Hour
	// readTimeout is how long the results of an ended batch are asked for: they are paid.
	readTimeout = 6 * time.Hour
)

// collectOne polls one batch and returns how many of its jobs were decided. No error of
// the provider ends a batch before its time: a single 404 may be a mistake.
func (a *Activities) collectOne(ctx context.Context, claim rewrite.Claim, s rewrite.Submission) (int, error) {
	at, err := a.parts.Provider.Poll(ctx, s.Routing, s.ProviderID)
	missing := failure.UpstreamUnavailable
	if err != nil {
		missing, at = failure.ClassOf(err), rewrite.ProviderBatch{Status: s.ProviderStatus}
		a.lg.WarnContext(ctx, "poll of a batch failed", "batch_id", s.ID, "run_id", claim.RunID, "error_class", missing)
	} else if at.Status.Final() {
		return a.conclude(ctx, claim, s, at, failure.UpstreamInternal)
	}
	asked := a.cancelLate(ctx, claim, s)
	if s.Age > a.cfg.BatchTimeout+cancelTimeout {
		s.FinalAge = readTimeout // there is nothing to wait for
		return a.conclude(ctx, claim, s, at, missing)
	}
	return 0, a.parts.Queue.RecordPoll(ctx, claim, s.ID, at.Status, asked)
}

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

// conclude decides about the jobs of a batch that has ended. While a file cannot be read,
// no job is decided; while the provider counts more results than the files have, only the
// jobs without a result stay open. After readTimeout they fail with class missing.
func (a *Activities) conclude(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, at rewrite.ProviderBatch, missing failure.Class) (int, error) {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	c := newCollection(a, claim, s, jobs)
	unread, err := c.readAll(ctx, at.OutputFileID, at.ErrorFileID)
	if err != nil {
		return 0, err
	}
	lg := a.lg.With("batch_id", s.ID, "run_id", claim.RunID, "provider_status", at.Status)
	wait := s.FinalAge < readTimeout
	if unread != nil {
		missing = failure.ClassOf(unread)
		lg.WarnContext(ctx, "results of a batch could not be read", "error_class", missing, "gave_up", !wait)
		if wait {
			return 0, a.parts.Queue.RecordPoll(ctx, claim, s.ID, at.Status, s.CancelAskedAt != nil)
		}
	}
	c.decideRead()
	c.decideProblems(s.ID, jobs, at)
	lost := len(c.open)
	if c.unknown+c.repeated+lost > 0 {
		lg.WarnContext(ctx, "files of a batch do not match its jobs", "unknown_lines", c.unknown, "repeated_lines", c.repeated, "missing_lines", lost,
			"read_lines", len(c.seen), "provider_count", at.Lines)
	}
	short := lost > 0 && len(c.seen) < min(at.Lines, len(jobs))
	if !short || !wait {
		c.failOpen(missing)
	}
	if err := c.flush(ctx); err != nil {
		return c.decided, err
	}
	if short && wait {
		return c.decided, a.parts.Queue.RecordPoll(ctx, claim, s.ID, at.Status, s.CancelAskedAt != nil)
	}
	lg.InfoContext(ctx, "batch collected", "jobs", c.decided)
	state := rewrite.Collected
	if !at.Status.Final() {
		state = rewrite.Abandoned
	}
	if err := a.parts.Queue.EndBatch(ctx, s.ID, state, at.Status); err != nil {
		return c.decided, err
	}
	if unread == nil && (lost == 0 || at.Status != rewrite.BatchCompleted) { // a result that was not stored stays at the provider
		a.deleteFiles(ctx, s, at)
	}
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
