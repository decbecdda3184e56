package activities

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// submissions are the batches in Postgres.
type submissions interface {
	PendingBatches(ctx context.Context, state rewrite.SubmissionState) (bool, error)
	// EnqueuedTokens is how much of a model's batches is at its provider.
	EnqueuedTokens(ctx context.Context, provider, model string) (int, error)
	// BeginSubmission writes the submission key and binds the jobs to it.
	BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error
	// BeginCreation records that from now on the provider may have the batch.
	BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error
	// RecordCreateError records how a creation ended of which is not known whether it
	// made a batch.
	RecordCreateError(ctx context.Context, c rewrite.Claim, batchID, class string) error
	// MarkSubmitted records the provider's id of the batch.
	MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error
	// AbandonSubmission queues the jobs of a batch that the provider never had.
	AbandonSubmission(ctx context.Context, runID, batchID string, wait time.Duration, reason string) error
	// Lease hands out a batch in the given state, each once in a run.
	Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (rewrite.Submission, bool, error)
	// NotePoll ends the lease on a batch that is still at the provider.
	NotePoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error
	// BatchJobs returns all jobs of a batch in the order of its input file.
	BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error)
	// EndBatch closes a batch whose jobs are all decided.
	EndBatch(ctx context.Context, batchID string, state rewrite.SubmissionState, status rewrite.BatchStatus) error
}

// SubmitBatches puts jobs of the batch lane into batches at their providers
// (queue 9). What does not fit goes back to the queue (queue 6.1).
func (w *Working) SubmitBatches(ctx context.Context) error { return w.submit(ctx, runOf(ctx)) }

func (w *Working) submit(ctx context.Context, runID string) error {
	deadline, err := w.deadline(ctx, runID)
	if err != nil {
		return err
	}
	if err := w.resolve(ctx, runID); err != nil {
		return fmt.Errorf("find lost batches: %w", err)
	}
	claim, claimed, err := w.claim(ctx, runID, rewrite.Batch)
	if err != nil {
		return fmt.Errorf("claim jobs of the batch lane: %w", err)
	}
	loads, err := w.load(ctx, claim, claimed)
	if err != nil {
		return err
	}
	for key, group := range inGroups(loads) {
		if err := w.submitGroup(ctx, claim, group, deadline); err != nil {
			return fmt.Errorf("submit group %s: %w", key, err)
		}
	}
	_, err = w.parts.Queue.Release(ctx, claim, w.cfg.Run.OverflowBackoff(), rewrite.Overflow)
	return err
}

// A load is a job ready to be put into a batch.
type load struct {
	job    rewrite.Job
	item   rewrite.Item
	weight rewrite.Weight
}

// load reads the jobs' texts. Jobs that cannot be put into any batch fail, each
// for its own reason. Those that an earlier attempt has bound to a batch are
// left to resolve.
func (w *Working) load(ctx context.Context, claim rewrite.Claim, claimed []rewrite.Job) ([]load, error) {
	var loads []load
	var failed []rewrite.Verdict
	for _, job := range claimed {
		if job.BatchID != nil {
			continue
		}
		item, _, err := w.item(ctx, job)
		if err != nil && ourFault(err) {
			return nil, err
		}
		var weight rewrite.Weight
		if err == nil {
			weight, err = w.parts.Batches.Weigh(*job.Routing, item)
		}
		if err != nil {
			failed = append(failed, w.failed(job, failure.ClassOf(err)))
			continue
		}
		loads = append(loads, load{job, item, weight})
	}
	return loads, w.settle(ctx, claim.Holder(), failed...)
}

// inGroups yields the jobs that may share a batch, group by group, in the order
// of their oldest jobs.
func inGroups(loads []load) iter.Seq2[rewrite.BatchKey, []load] {
	groups := map[rewrite.BatchKey][]load{}
	var order []rewrite.BatchKey
	for _, l := range loads {
		key := l.job.BatchKey()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], l)
	}
	return func(yield func(rewrite.BatchKey, []load) bool) {
		for _, key := range order {
			if !yield(key, groups[key]) {
				return
			}
		}
	}
}

// submitGroup splits a group by the provider's limits and submits each batch.
func (w *Working) submitGroup(ctx context.Context, claim rewrite.Claim, group []load, deadline time.Time) error {
	route := *group[0].job.Routing
	enqueued, err := w.parts.Queue.EnqueuedTokens(ctx, route.Provider, route.Model)
	if err != nil {
		return err
	}
	weights := make([]rewrite.Weight, len(group))
	for i, l := range group {
		weights[i] = l.weight
	}
	ranges, overflow := w.cfg.Limits.Split(weights, enqueued)
	if err := w.postpone(ctx, claim, group[len(group)-overflow:]); err != nil {
		return err
	}
	for _, r := range ranges {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil // the rest is released with the claim
		}
		ok, err := w.submitBatch(ctx, claim, group[r[0]:r[1]])
		if err != nil || !ok {
			return err
		}
	}
	return nil
}

// postpone queues jobs for which the provider has no room now.
func (w *Working) postpone(ctx context.Context, claim rewrite.Claim, rest []load) error {
	verdicts := make([]rewrite.Verdict, len(rest))
	for i, l := range rest {
		verdicts[i] = w.cfg.Run.Postpone(l.job, rewrite.NoCapacity)
	}
	return w.settle(ctx, claim.Holder(), verdicts...)
}

// ambiguous are the failures of a creation after which the provider may have
// the batch all the same.
var ambiguous = []failure.Class{
	failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable, failure.UpstreamInternal,
	failure.ServerBusy, failure.SchemaInvalid, failure.Unknown,
}

// submitBatch writes the submission key, uploads, creates and records. A crash
// after the first of these, or an end of the creation that is not known, leaves
// a submission that resolve finds. It reports false if the provider takes no
// more now.
func (w *Working) submitBatch(ctx context.Context, claim rewrite.Claim, loads []load) (bool, error) {
	submission := rewrite.Submission{ID: uuid.NewString(), Routing: *loads[0].job.Routing, Languages: loads[0].job.Languages}
	items := make([]rewrite.Item, len(loads))
	ids := make([]string, len(loads))
	for i, l := range loads {
		items[i], ids[i] = l.item, l.job.ID
		submission.Tokens += l.weight.Tokens
	}
	err := w.parts.Queue.BeginSubmission(ctx, claim, submission, ids, w.cfg.Lease)
	if failure.ClassOf(err) == failure.WriteConflict { // an operator took one of the jobs: the next run takes the rest
		return true, nil
	}
	if err != nil {
		return false, err
	}
	call, cancel := context.WithTimeout(ctx, w.cfg.Lease*4/5) // so that no call outlives the lease
	defer cancel()
	fileID, err := w.parts.Batches.Upload(call, submission.Routing, items)
	if err != nil {
		return w.refused(ctx, claim, submission, loads, err)
	}
	if err := w.parts.Queue.BeginCreation(ctx, claim, submission.ID, fileID, w.cfg.Lease); err != nil {
		return false, err
	}
	created, err := w.parts.Batches.Create(call, submission.Routing, fileID, submission.ID)
	switch {
	case err == nil:
		return true, w.insist(ctx, func(ctx context.Context) error {
			return w.parts.Queue.MarkSubmitted(ctx, claim.RunID, submission.ID, created)
		})
	case slices.Contains(ambiguous, failure.ClassOf(err)):
		w.lg.WarnContext(ctx, "creation of a batch ended in doubt", "batch_id", submission.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		return false, w.parts.Queue.RecordCreateError(context.WithoutCancel(ctx), claim, submission.ID, string(failure.ClassOf(err)))
	}
	return w.refused(ctx, claim, submission, loads, err)
}

// refused records a failed attempt of every job of a batch that the provider
// did not take.
func (w *Working) refused(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, loads []load, err error) (bool, error) {
	class := failure.ClassOf(err)
	if ctx.Err() != nil {
		class = failure.WorkerStopped
	}
	w.lg.WarnContext(ctx, "batch was not submitted", "batch_id", s.ID, "run_id", claim.RunID, "jobs", len(loads), "error_class", class)
	verdicts := make([]rewrite.Verdict, len(loads))
	for i, l := range loads {
		verdicts[i] = w.failed(l.job, class)
	}
	if err := w.settle(ctx, claim.Holder(), verdicts...); err != nil {
		return false, err
	}
	return !overloaded(class), w.parts.Queue.EndBatch(context.WithoutCancel(ctx), s.ID, rewrite.Abandoned, "")
}
