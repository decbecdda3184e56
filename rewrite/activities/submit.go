package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// SubmitBatches submits jobs of the batch lane to their providers in batches
// (rewrite 9). Jobs that exceed the limits return to the queue (rewrite 6.1).
func (a *Activities) SubmitBatches(ctx context.Context) error { return a.submit(ctx, runOf(ctx)) }

func (a *Activities) submit(ctx context.Context, runID string) error {
	deadline, err := a.deadline(ctx, runID, rewrite.Submitter)
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
	stopped := map[string]bool{} // it accepts no more batches in this run
	for _, group := range groupsOf(prepared) {
		model := group[0].job.Routing.ModelKey()
		if stopped[model] {
			continue
		}
		more, err := a.submitGroup(ctx, claim, group, deadline)
		if err != nil {
			return fmt.Errorf("submit group %s: %w", group[0].job.BatchKey(), err)
		}
		stopped[model] = !more
	}
	return a.releaseRest(ctx, claim)
}

// A preparedJob is a job that is ready for a batch.
type preparedJob struct {
	job    rewrite.Job
	item   rewrite.Item
	tokens int
}

// prepare reads the jobs' texts. A job that fits no batch fails with its own error. Jobs
// that an earlier attempt has bound to a batch are left to resolve.
func (a *Activities) prepare(ctx context.Context, claim rewrite.Claim, claimed []rewrite.Job) ([]preparedJob, error) {
	var prepared []preparedJob
	var failed []rewrite.Outcome
	for _, job := range claimed {
		if job.BatchID != nil {
			continue
		}
		item, _, err := a.item(ctx, job)
		tokens := 0
		if err == nil {
			tokens, err = a.parts.Provider.Weigh(*job.Routing, item)
		}
		switch {
		case err == nil:
			prepared = append(prepared, preparedJob{job, item, tokens})
		case ownFault(err):
			return nil, err
		default:
			failed = append(failed, a.failed(job, failure.ClassOf(err), true))
		}
	}
	return prepared, a.settle(ctx, claim.Writer(), failed...)
}

// groupsOf returns the jobs that may share a batch, group by group, in the order of the
// groups' oldest jobs.
func groupsOf(prepared []preparedJob) [][]preparedJob {
	var groups [][]preparedJob
	index := map[string]int{}
	for _, p := range prepared {
		i, known := index[p.job.BatchKey()]
		if !known {
			i = len(groups)
			index[p.job.BatchKey()], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// A part is the jobs of one batch to be, and why an offer of it was refused.
type part struct {
	jobs    []preparedJob
	refused failure.Class // empty: not offered yet, or accepted
	at      step
}

// submitGroup splits a group by the provider's limits, queues the jobs for which the provider has
// no room, and offers the others batch by batch. more is false if the provider accepts no more
// batches of the model now or the run's time is over; submit releases the jobs that are left.
//
// A refused upload may be due to a job: its halves are offered, until the job is alone; if both are
// refused alike, it is not. A refusal for the size halves the batch as well, and the limit is
// remembered for the next runs. Any other refusal names no job, so the jobs are queued again.
func (a *Activities) submitGroup(ctx context.Context, claim rewrite.Claim, group []preparedJob, deadline time.Time) (more bool, err error) {
	now, err := a.parts.Queue.Enqueued(ctx, db.EnqueuedParams{
		Provider: group[0].job.Routing.Provider, Model: group[0].job.Routing.Model, MaxRequests: a.cfg.Limits.Requests, MaxTokens: a.cfg.Limits.Tokens,
	})
	if err != nil {
		return false, err
	}
	tokens := make([]int, len(group))
	for i, p := range group {
		tokens[i] = p.tokens
	}
	ranges, overflow := rewrite.BatchLimits{Requests: now.MaxRequests, Tokens: now.MaxTokens}.Split(tokens, now.Tokens)
	var waiting []rewrite.Outcome
	for _, p := range group[len(group)-overflow:] {
		waiting = append(waiting, a.cfg.Run.Postpone(p.job, rewrite.NoCapacity))
	}
	if err := a.settle(ctx, claim.Writer(), waiting...); err != nil {
		return false, err
	}
	var parts []part
	for _, r := range ranges {
		parts = append(parts, part{jobs: group[r[0]:r[1]]})
	}
	accepted := false // a batch of this group: a refused upload is then due to its jobs
	for len(parts) > 0 {
		p := parts[0]
		parts = parts[1:]
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false, nil
		}
		if p.refused == "" {
			if p.refused, p.at, err = a.offer(ctx, claim, p.jobs); err != nil {
				return false, err
			}
		}
		n := len(p.jobs)
		halves := []part{{jobs: p.jobs[:n/2]}, {jobs: p.jobs[n/2:]}}
		switch {
		case p.refused == "":
			accepted = true
		case p.at == lost:
			return false, nil
		case n > 1 && p.refused == failure.TooLarge:
			parts = append(halves, parts...)
		case n > 1 && p.at == full:
			parts = append(halves[:1], parts...)
			halves[1].at = full
			if err := a.settle(ctx, claim.Writer(), a.refused(halves[1], "")...); err != nil {
				return false, err
			}
		case n > 1 && p.at == upload && (p.refused == failure.EndpointRefused || slices.Contains(own, p.refused)):
			for i := range halves {
				if halves[i].refused, halves[i].at, err = a.offer(ctx, claim, halves[i].jobs); err != nil {
					return false, err
				}
				accepted = accepted || halves[i].refused == ""
			}
			if halves[0].refused == failure.EndpointRefused && halves[1].refused == failure.EndpointRefused {
				id := uuid.NewString() // the next run offers the halves, and not the whole again
				return false, a.settle(ctx, claim.Writer(), slices.Concat(
					a.refused(halves[0], rewrite.Half(p.jobs[0].job.BatchPart, id, 1)), a.refused(halves[1], rewrite.Half(p.jobs[0].job.BatchPart, id, 2)))...)
			}
			halves = slices.DeleteFunc(halves, func(h part) bool { return h.refused == "" })
			parts = append(halves, parts...)
		case p.at == upload && (slices.Contains(own, p.refused) || p.refused == failure.EndpointRefused && accepted):
			if err := a.settle(ctx, claim.Writer(), a.failed(p.jobs[0].job, p.refused, true)); err != nil {
				return false, err
			}
		default:
			return false, a.settle(ctx, claim.Writer(), a.refused(p, "")...)
		}
	}
	return true, nil
}

// refused decides about the jobs of a batch that was refused for a reason that is not theirs.
func (a *Activities) refused(p part, name string) (all []rewrite.Outcome) {
	reason := string(p.refused)
	if p.at == full {
		reason = rewrite.NoCapacity
	}
	for _, job := range p.jobs {
		outcome := a.cfg.Run.Refuse(job.job, reason)
		outcome.Part = name
		all = append(all, outcome)
	}
	return all
}

// A step is where a submission ended that was not accepted.
type step int

const (
	upload step = iota // its lines were refused
	create             // the batch was refused: the request has no line
	full               // the provider has no room for so many requests or tokens
	lost               // the result is unknown, or an operator took a job: the next run goes on
)

// offer records the submission key, uploads the input file, waits until the provider has processed
// it, and creates the batch. If the worker crashes after the first step, or the result of the
// creation is unknown, a later run resolves the submission. refused is empty if the batch was
// created; otherwise its jobs are still claimed, or bound if the batch may exist.
func (a *Activities) offer(ctx context.Context, claim rewrite.Claim, jobs []preparedJob) (refused failure.Class, at step, err error) {
	s := store.Submission{Batch: store.Batch{BatchID: uuid.NewString(), RoutingDecision: *jobs[0].job.Routing, LanguagePair: jobs[0].job.Languages}}
	items, ids := make([]rewrite.Item, len(jobs)), make([]string, len(jobs))
	for i, p := range jobs {
		items[i], ids[i] = p.item, p.job.ID
		s.Tokens += p.tokens
	}
	err = a.parts.Queue.BeginSubmission(ctx, claim, s.Batch, ids, a.cfg.Lease)
	if failure.ClassOf(err) == failure.WriteConflict { // an operator changed one of the jobs: the next run submits the others
		return failure.WriteConflict, lost, nil
	}
	if err != nil {
		return "", 0, err
	}
	call, cancel := context.WithTimeout(ctx, a.cfg.Lease*4/5) // no call outlives the lease
	defer cancel()
	s.InputFileID, err = a.parts.Provider.Upload(call, s.RoutingDecision, items)
	if err == nil {
		at = create
		if err := a.parts.Queue.BeginCreation(ctx, claim, s.BatchID, s.InputFileID, a.cfg.Lease); err != nil {
			return "", 0, err
		}
		var created rewrite.ProviderBatch
		if created, err = a.createProcessed(call, s); err == nil {
			return "", 0, a.retryWrite(ctx, func(ctx context.Context) error {
				return a.parts.Queue.MarkSubmitted(ctx, claim.RunID, s.BatchID, created)
			})
		}
	}
	refused = failure.ClassOf(err)
	if ctx.Err() != nil {
		refused = failure.WorkerStopped
		if at == upload {
			at = lost
		}
	}
	a.lg.WarnContext(ctx, "batch was not submitted", "batch_id", s.BatchID, "run_id", claim.RunID, "jobs", len(jobs), "error_class", refused, "error", err.Error())
	ctx = context.WithoutCancel(ctx)
	if at == create && slices.Contains(ambiguous, refused) {
		return refused, lost, a.parts.Queue.RecordCreateError(ctx, string(refused), s.BatchID, claim.Token)
	}
	a.deleteFiles(ctx, s, rewrite.ProviderBatch{})
	if at == create && refused == failure.InputInvalid { // a creation has no line
		refused = failure.EndpointRefused
	}
	if errors.Is(err, rewrite.ErrNoRoom) {
		at = full
	}
	if at == full || refused == failure.TooLarge {
		err = a.parts.Queue.LearnLimit(ctx, at == full, s.BatchID)
	} else {
		err = nil
	}
	return refused, at, errors.Join(err, a.parts.Queue.DropSubmission(ctx, claim, s.BatchID))
}

// ambiguous are the failures of a creation after which the provider may have the
// batch.
var ambiguous = []failure.Class{
	failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable, failure.UpstreamInternal,
	failure.ServerBusy, failure.SchemaInvalid, failure.Unknown, failure.WorkerStopped,
}

// mostTries bounds the creations of a batch whose file has no readable status.
const mostTries = 5

// createProcessed creates the batch of an uploaded file once the provider has processed the file.
// Some providers refuse a creation before that, and some name no status.
func (a *Activities) createProcessed(ctx context.Context, s store.Submission) (created rewrite.ProviderBatch, err error) {
	for try, pause := 1, a.pause; ; pause = min(2*pause, 30*a.pause) {
		status, _ := a.parts.Provider.FileStatus(ctx, s.RoutingDecision, s.InputFileID)
		if !slices.Contains([]string{"pending", "running", "processing", "validating", "in_progress", "not_started", "notRunning"}, status) {
			created, err = a.parts.Provider.Create(ctx, s.RoutingDecision, s.InputFileID, s.BatchID)
			if err != nil && !slices.Contains(ambiguous, failure.ClassOf(err)) { // a gateway may refuse what the provider has executed
				found, unseen := a.parts.Provider.Find(ctx, s.RoutingDecision, s.BatchID, s.InputFileID, time.Now().Add(-skew))
				switch {
				case unseen == nil && len(found) > 0:
					return found[0], nil
				case unseen != nil && failure.ClassOf(unseen) != failure.NotFound: // a server without a list has only its refusal
					return created, failure.Errorf(failure.UpstreamUnavailable, "create a batch: it was refused, and the search for it failed: %w", errors.Join(err, unseen))
				}
			}
			early := slices.Contains([]failure.Class{failure.EndpointRefused, failure.NotFound, failure.InputInvalid, failure.WriteConflict}, failure.ClassOf(err))
			if err == nil || !early || errors.Is(err, rewrite.ErrNoRoom) || status == "processed" || try == mostTries {
				return created, err
			}
			try++
		}
		select {
		case <-ctx.Done():
			return created, failure.Errorf(failure.EndpointRefused, "create a batch: its file is not processed yet (%q)", status)
		case <-time.After(pause):
		}
	}
}
