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

// permanent are the classes of failures that the job itself causes: its message, its
// preferences or its order would fail every attempt at every provider, so the job fails
// at once. The contract retries only failures of the provider and transient ones
// (rewrite 8.1). Content that the provider refuses is included: sending it again would
// violate the provider's terms again.
var permanent = []failure.Class{
	failure.InputInvalid, failure.TooLarge, failure.ArtifactExpired, failure.ArtifactForeign, failure.ArtifactUnreadable,
	failure.ContentPolicy, failure.RedactionBlocked, failure.AdapterUnsupported,
}

// ownFault reports whether an error that keeps a job from being executed is neither the
// job's nor the provider's. The run is retried and counts no attempt. An unusable
// answer is the provider's fault, and a text that cannot be decoded affects one job
// only.
func ownFault(err error) bool {
	class := failure.ClassOf(err)
	return !slices.Contains(permanent, class) && class != failure.SchemaInvalid && class != failure.InvariantViolated
}

// overloaded reports whether the next call may fail with the same class, whatever its job.
// The run then stops calling: a provider's limits are not a means of flow control
// (rewrite 12), and a refusal without a class may be one of our account.
func overloaded(class failure.Class) bool {
	return slices.Contains([]failure.Class{
		failure.RateLimited, failure.ServerBusy, failure.QuotaExhausted, failure.AuthDenied, failure.PermissionDenied, failure.EndpointRefused,
	}, class)
}

// mayBeOneJobs reports whether a batch may have been refused because of one of its jobs.
func mayBeOneJobs(class failure.Class) bool {
	return class == failure.EndpointRefused || class != failure.AdapterUnsupported && slices.Contains(permanent, class)
}

// failed returns the verdict on a job whose attempt failed with class.
func (a *Activities) failed(job rewrite.Job, class failure.Class) rewrite.Verdict {
	return a.cfg.Run.AfterFailure(job, string(class), slices.Contains(permanent, class))
}

func (a *Activities) settle(ctx context.Context, by rewrite.Holder, verdicts ...rewrite.Verdict) error {
	return a.write(ctx, by, len(verdicts), func(ctx context.Context) (int, error) { return a.parts.Queue.Fail(ctx, by, verdicts) })
}

// complete writes results, by job id.
func (a *Activities) complete(ctx context.Context, by rewrite.Holder, results map[string]string) error {
	return a.write(ctx, by, len(results), func(ctx context.Context) (int, error) { return a.parts.Queue.Complete(ctx, by, results) })
}

// write writes the outcomes of n jobs and logs how many jobs the holder has lost.
func (a *Activities) write(ctx context.Context, by rewrite.Holder, n int, write func(context.Context) (int, error)) error {
	if n == 0 {
		return nil
	}
	return a.retryWrite(ctx, func(ctx context.Context) error {
		written, err := write(ctx)
		if err == nil && written < n {
			a.lg.WarnContext(ctx, "dropped results of jobs that another worker or an operator has taken", "run_id", by.RunID, "batch_id", by.BatchID, "jobs", n-written)
		}
		return err
	})
}

const (
	firstWait    = 200 * time.Millisecond // between two attempts of retryWrite
	longestWait  = 10 * time.Second
	writeTimeout = 10 * time.Second
)

// retryWrite retries write until it succeeds or the activity is canceled: a result that is
// already billed must not be lost. The write is not canceled with the activity, so that a
// stopping worker can finish it.
func (a *Activities) retryWrite(ctx context.Context, write func(context.Context) error) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
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
