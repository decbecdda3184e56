package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// CollectBatches collects the results of batches that have ended. Each job gets a
// status of its own (rewrite 9).
func (a *Activities) CollectBatches(ctx context.Context) error {
	runID := a.runOf(ctx)
	deadline, err := a.deadline(ctx, runID, rewrite.Collector)
	if err != nil {
		return err
	}
	claim := rewrite.NewClaim(runID, a.parts.Name)
	if err := a.restore(ctx, claim); err != nil {
		return fmt.Errorf("search for unknown batches: %w", err)
	}
	// The limit of results exceeds the number of jobs that are submitted between two runs. A batch has at
	// most as many jobs as a run claims: no batch exceeds the room.
	for room := 4 * a.cfg.Run.MaxJobsPerRun; room >= a.cfg.Run.MaxJobsPerRun && time.Now().Before(deadline) && ctx.Err() == nil; {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitted, a.cfg.lease())
		if err != nil || !ok {
			return err
		}
		decided, err := a.collectOne(ctx, claim, s)
		if err != nil {
			return fmt.Errorf("collect batch %s: %w", s.BatchID, err)
		}
		room -= decided
	}
	return nil
}

const (
	// cancelTimeout is how long a provider may take to cancel a batch, and how long a batch
	// that cannot be polled stays open after its time limit.
	cancelTimeout = 2 * time.Hour
	// readTimeout is how long the results of an ended batch are asked for, which are paid.
	readTimeout = 6 * time.Hour
)

// collectOne polls one batch and returns how many of its jobs were decided. No error of
// the provider ends a batch before its time: a single 404 may be a mistake.
func (a *Activities) collectOne(ctx context.Context, claim rewrite.Claim, s store.Submission) (int, error) {
	if s.State == rewrite.Abandoned { // by an operator, or while it could not be canceled
		return 0, a.recordPoll(ctx, claim, s, s.ProviderStatus, a.cancel(ctx, claim, s))
	}
	at, err := a.parts.Provider.Poll(ctx, s.RoutingDecision, s.ProviderBatchID)
	missing := failure.UpstreamUnavailable
	if err != nil {
		missing, at = failure.ClassOf(err), rewrite.ProviderBatch{Status: s.ProviderStatus}
		a.lg.WarnContext(ctx, "poll of a batch failed", "batch_id", s.BatchID, "run_id", claim.RunID, "error_class", missing)
	} else if at.Status.Final() {
		return a.conclude(ctx, claim, s, at, failure.UpstreamInternal)
	}
	if s.Age > batchTimeout && s.CancelAskedAt == nil && a.cancel(ctx, claim, s) {
		s.CancelAskedAt = new(time.Now())
	}
	if s.Age > batchTimeout+cancelTimeout {
		s.FinalAge = readTimeout // there is nothing to wait for
		return a.conclude(ctx, claim, s, at, missing)
	}
	return 0, a.recordPoll(ctx, claim, s, at.Status, s.CancelAskedAt != nil)
}

// cancel asks the provider to cancel a batch and reports whether to stop asking.
func (a *Activities) cancel(ctx context.Context, claim rewrite.Claim, s store.Submission) bool {
	err := a.parts.Provider.Cancel(ctx, s.RoutingDecision, s.ProviderBatchID)
	if err != nil {
		a.lg.WarnContext(ctx, "cancellation of a batch failed", "batch_id", s.BatchID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
	}
	return err == nil || failure.ClassOf(err) == failure.WriteConflict // it has ended
}

// recordPoll records the provider's status and ends the lease on a batch that the provider has not
// finished, or whose results could not be read yet.
func (a *Activities) recordPoll(ctx context.Context, claim rewrite.Claim, s store.Submission, status rewrite.BatchStatus, cancelAsked bool) error {
	return a.parts.Queue.RecordPoll(ctx, db.RecordPollParams{
		ProviderStatus: status, Final: status.Final(), CancelAsked: cancelAsked, BatchID: s.BatchID, LeaseToken: claim.Token,
	})
}

// endBatch closes a batch and deletes its files at the provider, unless they may have a
// result that is not stored.
func (a *Activities) endBatch(ctx context.Context, s store.Submission, at rewrite.ProviderBatch, unstored bool) error {
	state := rewrite.Collected
	if !at.Status.Final() {
		state = rewrite.Abandoned
	}
	if err := a.parts.Queue.EndBatch(ctx, state, string(at.Status), s.BatchID); err != nil {
		return err
	}
	a.lg.InfoContext(ctx, "batch collected", "batch_id", s.BatchID, "state", state, "provider_status", at.Status)
	if !unstored {
		a.deleteFiles(ctx, s, at)
	}
	return nil
}

// deleteFiles deletes a batch's files at the provider: they contain messages. A file
// that cannot be deleted expires there.
func (a *Activities) deleteFiles(ctx context.Context, s store.Submission, at rewrite.ProviderBatch) {
	for _, file := range []string{s.InputFileID, at.OutputFileID, at.ErrorFileID} {
		if file == "" {
			continue
		}
		if err := a.parts.Provider.Delete(ctx, s.RoutingDecision, file); err != nil {
			a.lg.WarnContext(ctx, "deletion of a batch's file failed", "batch_id", s.BatchID, "error_class", failure.ClassOf(err))
		}
	}
}
