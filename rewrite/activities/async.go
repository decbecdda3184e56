package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/rewrite"
)

// ExecuteJobs executes jobs of the async lane, one call per job (rewrite 9). Jobs that
// exceed the run's limits return to the queue.
func (a *Activities) ExecuteJobs(ctx context.Context) error {
	runID := a.runOf(ctx)
	deadline, err := a.deadline(ctx, runID, rewrite.AsyncLane)
	if err != nil {
		return err
	}
	claim, claimed, err := a.claim(ctx, runID, rewrite.Async)
	if err != nil {
		return fmt.Errorf("claim jobs of the async lane: %w", err)
	}
	defer a.extend(ctx, claim)()
	// A canceled or terminated run releases its other jobs before its calls have ended.
	defer context.AfterFunc(ctx, func() {
		if err := a.releaseRest(ctx, claim); err != nil {
			a.lg.WarnContext(ctx, "release of jobs failed", "run_id", runID, "error_class", failure.ClassOf(err))
		}
	})()
	lane := &lane{Activities: a, claim: claim, models: map[string]*model{}}
	calls, running := errgroup.WithContext(ctx) // in-flight calls run to completion: they are already billed
	calls.SetLimit(a.cfg.Concurrency)
	for _, job := range claimed {
		if time.Now().After(deadline) {
			break
		}
		calls.Go(func() error {
			if lane.stopped(job) || running.Err() != nil {
				return nil
			}
			return lane.execute(ctx, job)
		})
	}
	err = calls.Wait()
	for _, m := range lane.models { // no job was executed after these: the refusals may not be theirs
		for _, r := range m.refused {
			err = errors.Join(err, a.settle(ctx, claim, "", a.failed(r, failure.EndpointRefused, false)))
		}
	}
	if err != nil {
		return a.release(ctx, claim, fmt.Errorf("execute jobs: %w", err))
	}
	return a.releaseRest(ctx, claim)
}

// A lane is one run of the async lane.
type lane struct {
	*Activities
	claim rewrite.Claim

	mu     sync.Mutex
	models map[string]*model
}

// A model is what a run has seen of one model.
type model struct {
	refused []rewrite.Job // refused without a reason since a job was last executed
	row     int           // failed calls since then
	stop    bool
}

// The run stops calling a model that refuses so many jobs in a row without a reason, or whose calls
// fail so often in a row: it is not the jobs' fault (rewrite 12).
const (
	mostRefused = 2
	mostFailed  = 3
)

func (l *lane) stopped(job rewrite.Job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.models[job.Routing.ModelKey()]
	return m != nil && m.stop
}

// execute executes one job. An error is neither the job's nor the provider's: the run is retried.
func (l *lane) execute(ctx context.Context, job rewrite.Job) error {
	if job.BegunAt != nil { // an earlier attempt of the run crashed and may have executed the job
		return l.settle(ctx, l.claim, "", l.failed(job, failure.WorkerStopped, true))
	}
	item, message, err := l.item(ctx, job)
	switch {
	case err != nil && ownFault(err):
		return err
	case err != nil:
		return l.settle(ctx, l.claim, "", l.failed(job, failure.ClassOf(err), true))
	}
	begun, err := l.parts.Queue.BeginJob(ctx, job.ID, l.claim.Token)
	if err != nil || begun == 0 { // an operator canceled the job, or the claim was lost
		return err
	}
	// A canceled or terminated run ends after its calls, which are billed; a worker that stops has no time for them.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.CallTimeout)
	defer cancel()
	stopping := func() bool { return errors.Is(context.Cause(ctx), temporal.ErrStopping) }
	defer context.AfterFunc(ctx, func() {
		if stopping() {
			cancel()
		}
	})()
	answer, err := l.parts.Provider.Rewrite(call, *job.Routing, item)
	var ref string
	if err == nil {
		ref, err = l.accept(ctx, item, message, answer)
	} else if stopping() {
		err = failure.Errorf(failure.WorkerStopped, "the worker was stopped during the call")
	}
	outcomes := l.learn(ctx, job, err)
	if err == nil {
		outcomes = append(outcomes, job.Done(ref))
	}
	return l.settle(ctx, l.claim, "", outcomes...)
}

// learn records how a call ended, and returns what is decided by it: a refusal without a reason is
// decided when another job of the model was executed, or at the end of the run.
func (l *lane) learn(ctx context.Context, job rewrite.Job, err error) (outcomes []rewrite.Outcome) {
	var class failure.Class
	if err != nil {
		class = failure.ClassOf(err)
		l.lg.WarnContext(ctx, "rewrite attempt failed", "job_id", job.ID, "run_id", l.claim.RunID, "attempt", job.AttemptCount+1, "error_class", class, "error", err.Error())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.models[job.Routing.ModelKey()]
	if m == nil {
		m = new(model)
		l.models[job.Routing.ModelKey()] = m
	}
	m.row++
	switch {
	case executed(class):
		for _, r := range m.refused {
			outcomes = append(outcomes, l.failed(r, failure.EndpointRefused, true))
		}
		m.refused, m.row = nil, 0
	case class == failure.EndpointRefused:
		m.refused = append(m.refused, job)
		m.stop = m.stop || len(m.refused) >= mostRefused
		return nil
	}
	m.stop = m.stop || m.row >= mostFailed || slices.Contains(refusing, class)
	if err != nil {
		outcomes = append(outcomes, l.failed(job, class, true))
	}
	return outcomes
}
