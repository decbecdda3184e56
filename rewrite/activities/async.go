package activities

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// ExecuteJobs executes jobs of the async lane, one call per job (rewrite 9). Jobs that
// exceed the run's limits return to the queue.
func (a *Activities) ExecuteJobs(ctx context.Context) error { return a.execute(ctx, runOf(ctx)) }

func (a *Activities) execute(ctx context.Context, runID string) error {
	deadline, err := a.deadline(ctx, runID)
	if err != nil {
		return err
	}
	claim, claimed, err := a.claim(ctx, runID, rewrite.Async)
	if err != nil {
		return fmt.Errorf("claim jobs of the async lane: %w", err)
	}
	defer a.extend(ctx, claim)()
	var stop atomic.Bool     // the provider is overloaded, or a write failed
	var calls errgroup.Group // in-flight calls run to completion: they are already billed
	calls.SetLimit(a.cfg.Concurrency)
	for _, job := range claimed {
		if stop.Load() || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		calls.Go(func() error {
			if stop.Load() { // set while the job waited for a slot
				return nil
			}
			class, err := a.executeOne(ctx, claim, job)
			if overloaded(class) || err != nil {
				stop.Store(true)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return a.release(ctx, claim, fmt.Errorf("execute jobs: %w", err))
	}
	return a.releaseRest(ctx, claim)
}

// executeOne executes one job and returns the error class of its attempt. err is not the
// job's fault: the run is retried.
func (a *Activities) executeOne(ctx context.Context, claim rewrite.Claim, job rewrite.Job) (failure.Class, error) {
	fail := func(err error) (failure.Class, error) {
		class := failure.ClassOf(err)
		a.lg.WarnContext(ctx, "rewrite attempt failed", "job_id", job.ID, "run_id", claim.RunID, "attempt", job.AttemptCount+1, "error_class", class)
		return class, a.settle(ctx, claim.Holder(), a.failed(job, class))
	}
	if job.BegunAt != nil { // an earlier attempt of the run crashed and may have executed the job
		return fail(failure.Errorf(failure.WorkerStopped, "the worker was lost during the call"))
	}
	item, message, err := a.item(ctx, job)
	if err != nil && ownFault(err) {
		return "", err
	}
	if err != nil {
		return fail(err)
	}
	begun, err := a.parts.Queue.Begin(ctx, claim, job.ID)
	if err != nil || !begun { // an operator canceled the job, or the claim was lost
		return "", err
	}
	call, cancel := context.WithTimeout(ctx, a.cfg.CallTimeout)
	defer cancel()
	answer, err := a.parts.Provider.Rewrite(call, *job.Routing, item)
	if err != nil && ctx.Err() != nil {
		err = failure.Errorf(failure.WorkerStopped, "the worker was stopped during the call")
	}
	if err != nil {
		return fail(err)
	}
	ref, err := a.accept(ctx, item, message, answer)
	if err != nil {
		return fail(err)
	}
	return "", a.complete(ctx, claim.Holder(), map[string]string{job.ID: ref})
}
