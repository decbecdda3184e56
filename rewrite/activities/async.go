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

// ExecuteJobs executes jobs of the async lane, one call for each (queue 9). What
// does not fit into the run goes back to the queue.
func (w *Working) ExecuteJobs(ctx context.Context) error { return w.execute(ctx, runOf(ctx)) }

func (w *Working) execute(ctx context.Context, runID string) error {
	deadline, err := w.deadline(ctx, runID)
	if err != nil {
		return err
	}
	claim, claimed, err := w.claim(ctx, runID, rewrite.Async)
	if err != nil {
		return fmt.Errorf("claim jobs of the async lane: %w", err)
	}
	var stop atomic.Bool     // the provider takes no more now, or we cannot write
	var calls errgroup.Group // calls under way end by themselves: they are paid
	calls.SetLimit(w.cfg.Concurrency)
	for _, job := range claimed {
		if stop.Load() || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		calls.Go(func() error {
			class, err := w.executeOne(ctx, claim, job)
			if overloaded(class) || err != nil {
				stop.Store(true)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return fmt.Errorf("execute jobs: %w", err)
	}
	_, err = w.parts.Queue.Release(ctx, claim, w.cfg.Run.OverflowBackoff(), rewrite.Overflow)
	return err
}

// executeOne executes one job and returns the class of its failure. An error is
// not the job's: the run has to be repeated.
func (w *Working) executeOne(ctx context.Context, claim rewrite.Claim, job rewrite.Job) (failure.Class, error) {
	fail := func(err error) (failure.Class, error) {
		class := failure.ClassOf(err)
		w.lg.WarnContext(ctx, "rewrite attempt failed", "job_id", job.ID, "run_id", claim.RunID, "attempt", job.AttemptCount+1, "error_class", class)
		return class, w.settle(ctx, claim.Holder(), w.failed(job, class))
	}
	if job.BegunAt != nil { // by an attempt that died: it may have been executed
		return fail(failure.Errorf(failure.WorkerStopped, "the worker was lost during the call"))
	}
	item, message, err := w.item(ctx, job)
	if err != nil {
		if ourFault(err) {
			return "", err
		}
		return fail(err)
	}
	begun, err := w.parts.Queue.Begin(ctx, claim, job.ID)
	if err != nil || !begun { // canceled meanwhile, or taken away
		return "", err
	}
	call, cancel := context.WithTimeout(ctx, w.cfg.CallTimeout)
	defer cancel()
	answer, err := w.parts.Rewriter.Rewrite(call, *job.Routing, item)
	if err != nil {
		if ctx.Err() != nil {
			err = failure.Errorf(failure.WorkerStopped, "the worker was told to stop during the call")
		}
		return fail(err)
	}
	ref, err := w.accept(ctx, item, message, answer)
	if err != nil {
		return fail(err)
	}
	return "", w.complete(ctx, claim.Holder(), map[string]string{job.ID: ref})
}
