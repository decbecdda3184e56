package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// SubmitBatches submits jobs of the batch lane to their providers in batches
// (rewrite 9). Jobs that exceed the limits return to the queue (rewrite 6.1).
func (a *Activities) SubmitBatches(ctx context.Context) error { return a.submit(ctx, runOf(ctx)) }

func (a *Activities) submit(ctx context.Context, runID string) error {
	deadline, err := a.deadline(ctx, runID)
	if err != nil {
		return err
	}
	if err := a.resolve(ctx, runID); err != nil {
		return fmt.Errorf("resolve lost batches: %w", err)
	}
	claim, claimed, err := a.claim(ctx, runID, rewrite.Batch)
	if err != nil {
		return fmt.Errorf("claim jobs of the batch lane: %w", err)
	}
	defer a.extend(ctx, claim)()
	prepared, err := a.prepare(ctx, claim, claimed)
	if err != nil {
		return a.release(ctx, claim, err)
	}
	for _, group := range groupsOf(prepared) {
		if err := a.submitGroup(ctx, claim, group, deadline); err != nil {
			return fmt.Errorf("submit group %s: %w", group[0].job.BatchKey(), err)
		}
	}
	return a.releaseRest(ctx, claim)
}

// A preparedJob is a job that is ready for a batch.
type preparedJob struct {
	job    rewrite.Job
	item   rewrite.Item
	weight rewrite.Weight
}

// prepare reads the jobs' texts. A job that fits no batch fails with its own error. Jobs
// that an earlier attempt has bound to a batch are left to resolve.
func (a *Activities) prepare(ctx context.Context, claim rewrite.Claim, claimed []rewrite.Job) ([]preparedJob, error) {
	var prepared []preparedJob
	var failed []rewrite.Verdict
	for _, job := range claimed {
		if job.BatchID != nil {
			continue
		}
		item, _, err := a.item(ctx, job)
		if err != nil && ownFault(err) {
			return nil, err
		}
		var weight rewrite.Weight
		if err == nil {
			weight, err = a.parts.Provider.Weigh(*job.Routing, item)
		}
		if err != nil {
			failed = append(failed, a.failed(job, failure.ClassOf(err)))
			continue
		}
		prepared = append(prepared, preparedJob{job, item, weight})
	}
	return prepared, a.settle(ctx, claim.Holder(), failed...)
}

// groupsOf returns the jobs that may share a batch, group by group, in the order of the
// groups' oldest jobs.
func groupsOf(prepared []preparedJob) [][]preparedJob {
	var groups [][]preparedJob
	index := map[rewrite.BatchKey]int{}
	for _, l := range prepared {
		i, known := index[l.job.BatchKey()]
		if !known {
			i = len(groups)
			index[l.job.BatchKey()], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}

// submitGroup splits a group by the provider's limits, queues the jobs for which the
// provider has no room, and submits each batch.
func (a *Activities) submitGroup(ctx context.Context, claim rewrite.Claim, group []preparedJob, deadline time.Time) error {
	route := *group[0].job.Routing
	enqueued, err := a.parts.Queue.EnqueuedTokens(ctx, route.Provider, route.Model)
	if err != nil {
		return err
	}
	weights := make([]rewrite.Weight, len(group))
	for i, l := range group {
		weights[i] = l.weight
	}
	ranges, overflow := a.cfg.Limits.Split(weights, enqueued)
	err = a.settle(ctx, claim.Holder(), verdicts(group[len(group)-overflow:], func(job rewrite.Job) rewrite.Verdict {
		return a.cfg.Run.Postpone(job, rewrite.NoCapacity)
	})...)
	if err != nil {
		return err
	}
	var parts [][]preparedJob
	for _, r := range ranges {
		parts = append(parts, group[r[0]:r[1]])
	}
	_, err = a.submitParts(ctx, claim, parts, deadline)
	return err
}

// submitParts submits each part as one batch. more is false if the provider accepts no
// more batches now or the run's time is over; submit releases the other jobs.
func (a *Activities) submitParts(ctx context.Context, claim rewrite.Claim, parts [][]preparedJob, deadline time.Time) (more bool, err error) {
	for _, part := range parts {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false, nil
		}
		if more, err := a.submitBatch(ctx, claim, part, deadline); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func verdicts(prepared []preparedJob, verdict func(rewrite.Job) rewrite.Verdict) []rewrite.Verdict {
	all := make([]rewrite.Verdict, len(prepared))
	for i, l := range prepared {
		all[i] = verdict(l.job)
	}
	return all
}

// submitBatch records the submission key, uploads the input file and creates the batch.
// If the worker crashes after the first step, or the result of the creation is unknown,
// a later run resolves the submission. more is false if the provider accepts no more
// batches now.
func (a *Activities) submitBatch(ctx context.Context, claim rewrite.Claim, prepared []preparedJob, deadline time.Time) (more bool, err error) {
	s := rewrite.Submission{ID: uuid.NewString(), Routing: *prepared[0].job.Routing, Languages: prepared[0].job.Languages}
	items, ids := make([]rewrite.Item, len(prepared)), make([]string, len(prepared))
	for i, l := range prepared {
		items[i], ids[i] = l.item, l.job.ID
		s.Tokens += l.weight.Tokens
	}
	err = a.parts.Queue.BeginSubmission(ctx, claim, s, ids, a.cfg.Lease)
	if failure.ClassOf(err) == failure.WriteConflict { // an operator changed one of the jobs: the next run submits the others
		return true, nil
	}
	if err != nil {
		return false, err
	}
	call, cancel := context.WithTimeout(ctx, a.cfg.Lease*4/5) // no call outlives the lease
	defer cancel()
	fileID, err := a.parts.Provider.Upload(call, s.Routing, items)
	if err != nil {
		return a.refused(ctx, claim, s, prepared, err, deadline)
	}
	s.InputFileID = fileID
	if err := a.parts.Queue.BeginCreation(ctx, claim, s.ID, fileID, a.cfg.Lease); err != nil {
		return false, err
	}
	created, err := a.parts.Provider.Create(call, s.Routing, fileID, s.ID)
	switch {
	case err == nil:
		return true, a.retryWrite(ctx, func(ctx context.Context) error {
			return a.parts.Queue.MarkSubmitted(ctx, claim.RunID, s.ID, created)
		})
	case slices.Contains(ambiguous, failure.ClassOf(err)):
		a.lg.WarnContext(ctx, "result of a batch creation is unknown", "batch_id", s.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		return false, a.parts.Queue.RecordCreateError(context.WithoutCancel(ctx), claim, s.ID, string(failure.ClassOf(err)))
	}
	return a.refused(ctx, claim, s, prepared, err, deadline)
}

// ambiguous are the failures of a creation after which the provider may have the
// batch.
var ambiguous = []failure.Class{
	failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable, failure.UpstreamInternal,
	failure.ServerBusy, failure.SchemaInvalid, failure.Unknown,
}

// refused decides about the jobs of a batch that the provider did not accept. If the input
// may be at fault, the batch is bisected until one job is alone: only that job fails, or has
// one attempt less and ends the run if the provider does not say why it refuses.
// If the provider has no room, no attempt is counted.
func (a *Activities) refused(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, prepared []preparedJob, err error, deadline time.Time) (more bool, _ error) {
	class := failure.ClassOf(err)
	if ctx.Err() != nil {
		class = failure.WorkerStopped
	}
	a.deleteFiles(context.WithoutCancel(ctx), s, rewrite.ProviderBatch{})
	a.lg.WarnContext(ctx, "batch was not submitted", "batch_id", s.ID, "run_id", claim.RunID, "jobs", len(prepared), "error_class", class)
	if n := len(prepared); n > 1 && mayBeOneJobs(class) {
		if err := a.parts.Queue.DropSubmission(ctx, claim, s.ID); err != nil {
			return false, err
		}
		return a.submitParts(ctx, claim, [][]preparedJob{prepared[:n/2], prepared[n/2:]}, deadline)
	}
	failed := verdicts(prepared, func(job rewrite.Job) rewrite.Verdict { return a.unsubmitted(job, class) })
	if err := a.settle(ctx, claim.Holder(), failed...); err != nil {
		return false, err
	}
	return !overloaded(class), a.parts.Queue.EndBatch(context.WithoutCancel(ctx), s.ID, rewrite.Abandoned, "")
}

// unsubmitted returns the verdict on a job whose batch was not accepted. A limit or refusal of
// the account counts no attempt, because no job was sent.
func (a *Activities) unsubmitted(job rewrite.Job, class failure.Class) rewrite.Verdict {
	if overloaded(class) && class != failure.EndpointRefused {
		return a.cfg.Run.Postpone(job, string(class))
	}
	return a.failed(job, class)
}
