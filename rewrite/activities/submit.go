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
func (a *Activities) SubmitBatches(ctx context.Context) error {
	runID := a.runOf(ctx)
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
	return prepared, a.settle(ctx, claim, "", failed...)
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

// submitGroup offers a group batch by batch, each as large as the limits allow, and queues the jobs
// for which the provider has no room. more is false if the provider accepts no more batches of the
// model now or the run's time is over; submit releases the jobs that are left.
//
// A refusal for the size teaches a limit, with which the next offer is smaller. A refused upload may
// be due to a job: see divide. Any other refusal names no job, so the jobs are queued again.
func (a *Activities) submitGroup(ctx context.Context, claim rewrite.Claim, group []preparedJob, deadline time.Time) (more bool, err error) {
	for len(group) > 0 {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false, nil
		}
		now, err := a.parts.Queue.Enqueued(ctx, db.EnqueuedParams{
			Provider: group[0].job.Routing.Provider, Model: group[0].job.Routing.Model, MaxRequests: a.cfg.Limits.Requests, MaxTokens: a.cfg.Limits.Tokens,
		})
		if err != nil {
			return false, err
		}
		jobs, tokens := make([]rewrite.Job, len(group)), make([]int, len(group))
		for i, p := range group {
			jobs[i], tokens[i] = p.job, p.tokens
		}
		n := rewrite.BatchLimits{Requests: now.MaxRequests, Tokens: now.MaxTokens}.Fit(tokens, now.Tokens)
		if n == 0 {
			return true, a.settle(ctx, claim, "", decideAll(jobs, a.cfg.Run.Postpone, rewrite.NoCapacity)...)
		}
		refused, at, err := a.offer(ctx, claim, group[:n])
		if err != nil {
			return false, err
		}
		reason := string(refused)
		if at == full {
			reason = rewrite.NoCapacity
		}
		var outcomes []rewrite.Outcome
		switch {
		case refused == "":
		case at == lost:
			return false, nil
		case n > 1 && (at == full || refused == failure.TooLarge):
			continue
		case at == upload && (refused == failure.EndpointRefused || slices.Contains(own, refused)):
			if outcomes, err = a.divide(ctx, uuid.NewString(), jobs[:n], refused); err != nil {
				return false, err
			}
		default:
			return false, a.settle(ctx, claim, "", decideAll(jobs[:n], a.cfg.Run.Refuse, reason)...)
		}
		if err := a.settle(ctx, claim, "", outcomes...); err != nil {
			return false, err
		}
		group = group[n:]
	}
	return true, nil
}

// decideAll returns the outcomes of jobs that are decided alike.
func decideAll(jobs []rewrite.Job, decide func(rewrite.Job, string) rewrite.Outcome, reason string) []rewrite.Outcome {
	outcomes := make([]rewrite.Outcome, len(jobs))
	for i, job := range jobs {
		outcomes[i] = decide(job, reason)
	}
	return outcomes
}

// divide decides about the jobs of a batch that was refused as a whole, with class and without a line.
// The next run submits the halves, until the job at fault is alone. If both halves are refused alike, or
// no job of the batch was executed yet, it is not the jobs' fault: they wait.
func (a *Activities) divide(ctx context.Context, batchID string, jobs []rewrite.Job, class failure.Class) ([]rewrite.Outcome, error) {
	part := jobs[0].BatchPart
	of, err := a.parts.Queue.PartState(ctx, part)
	switch {
	case err != nil:
		return nil, err
	case part != "" && !of.Works && (of.Alike || len(jobs) == 1):
		return decideAll(jobs, a.cfg.Run.Refuse, string(failure.EndpointRefused)), nil
	case len(jobs) == 1:
		return []rewrite.Outcome{a.failed(jobs[0], class, of.Works)}, nil
	}
	outcomes := decideAll(jobs, a.cfg.Run.Postpone, rewrite.Bisected)
	for i := range outcomes {
		outcomes[i].Part = rewrite.Half(part, batchID, 1+2*i/len(jobs))
	}
	return outcomes, nil
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
	err = a.parts.Queue.BeginSubmission(ctx, claim, s.Batch, ids, a.cfg.lease())
	if failure.ClassOf(err) == failure.WriteConflict { // an operator changed one of the jobs: the next run submits the others
		return failure.WriteConflict, lost, nil
	}
	if err != nil {
		return "", 0, err
	}
	call, cancel := context.WithTimeout(ctx, a.cfg.lease()*4/5) // no call outlives the lease
	defer cancel()
	s.InputFileID, err = a.parts.Provider.Upload(call, s.RoutingDecision, items)
	if err == nil {
		at = create
		if err := a.parts.Queue.BeginCreation(ctx, claim, s.BatchID, s.InputFileID, a.cfg.lease()); err != nil {
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

// noList are the failures of a search in a server without a list: it has only its refusal.
var noList = []failure.Class{failure.NotFound, failure.ConfigInvalid}

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
				found, unseen := a.find(ctx, s, time.Now())
				switch {
				case unseen == nil && found != nil:
					return *found, nil
				case unseen != nil && !slices.Contains(noList, failure.ClassOf(unseen)):
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
