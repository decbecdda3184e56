package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// permanent are the classes of failures that are the job's own: its message, its
// preferences or its order would end every attempt the same, whoever is asked.
// The contract has retries for failures of the provider and for those that may
// pass only (queue 8.1), so such a job fails at once. Content that the provider
// refuses is among them: asking again would break its terms once more.
var permanent = []failure.Class{
	failure.InputInvalid, failure.TooLarge, failure.ArtifactExpired,
	failure.ContentPolicy, failure.RedactionBlocked, failure.AdapterUnsupported,
}

// ourFault tells an error of our own parts, which keeps a job from being tried: the
// run is repeated, and no attempt is counted. An answer that cannot be used is
// the provider's, and a text that cannot be unpacked concerns no other job.
func ourFault(err error) bool {
	class := failure.ClassOf(err)
	return !slices.Contains(permanent, class) && class != failure.SchemaInvalid && class != failure.InvariantViolated
}

// overloaded are the classes that say that whatever follows fails, too: the run
// stops asking, for a provider's limits are not our flow control (queue 12).
func overloaded(class failure.Class) bool {
	return slices.Contains([]failure.Class{
		failure.RateLimited, failure.ServerBusy, failure.QuotaExhausted, failure.AuthDenied, failure.PermissionDenied,
	}, class)
}

// failed is the verdict on a job whose attempt ended with class.
func (w *Working) failed(job rewrite.Job, class failure.Class) rewrite.Verdict {
	return w.cfg.Run.AfterFailure(job, string(class), slices.Contains(permanent, class))
}

// settle writes verdicts and logs how many jobs were not the holder's any more.
func (w *Working) settle(ctx context.Context, by rewrite.Holder, verdicts ...rewrite.Verdict) error {
	if len(verdicts) == 0 {
		return nil
	}
	return w.insist(ctx, func(ctx context.Context) error {
		n, err := w.parts.Queue.Fail(ctx, by, verdicts)
		w.logLost(ctx, by, len(verdicts), n, err)
		return err
	})
}

// complete writes results, by job id.
func (w *Working) complete(ctx context.Context, by rewrite.Holder, results map[string]string) error {
	if len(results) == 0 {
		return nil
	}
	return w.insist(ctx, func(ctx context.Context) error {
		n, err := w.parts.Queue.Complete(ctx, by, results)
		w.logLost(ctx, by, len(results), n, err)
		return err
	})
}

func (w *Working) logLost(ctx context.Context, by rewrite.Holder, want, got int, err error) {
	if err == nil && got < want {
		w.lg.WarnContext(ctx, "results of jobs that were taken away are dropped", "run_id", by.RunID, "batch_id", by.BatchID, "jobs", want-got)
	}
}

// Waits of insist.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 10 * time.Second
	// lastWrite is what a worker that is told to stop has for a write.
	lastWrite = 2 * time.Second
)

// insist repeats a write that holds what was paid for until it succeeds, for as
// long as the activity may go on: losing it would mean to pay again. It is tried
// once more when the worker is told to stop.
func (w *Working) insist(ctx context.Context, write func(context.Context) error) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(lastWrite, longestWait))
		err := write(attempt)
		cancel()
		if err == nil || !failure.ClassOf(err).Retryable() {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("give up: %w", ctx.Err()))
		case <-time.After(wait):
		}
	}
}
