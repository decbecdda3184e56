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

// own are the classes that name the job: its row, its texts, or what its own call or line was
// answered. Every attempt would end the same, so the job fails at once. Content that the provider
// refuses is included: sending it again would violate the provider's terms again.
var own = []failure.Class{
	failure.InputInvalid, failure.TooLarge, failure.ArtifactExpired, failure.ArtifactForeign, failure.ArtifactUnreadable,
	failure.ContentPolicy, failure.RedactionBlocked, failure.AdapterUnsupported,
}

// refusing are the classes with which an endpoint refuses this installation, whatever the job is: the
// key, the account, the model, a setting or the rate. It has not executed the job.
var refusing = []failure.Class{
	failure.AuthDenied, failure.PermissionDenied, failure.QuotaExhausted, failure.ConfigInvalid, failure.NotFound,
	failure.RateLimited, failure.ServerBusy,
}

// ownFault reports whether an error that keeps a job from being executed is neither the
// job's nor the provider's. The run is retried and counts no attempt. An unusable
// answer is the provider's fault, and a text that cannot be decoded affects one job
// only.
func ownFault(err error) bool {
	class := failure.ClassOf(err)
	return !slices.Contains(own, class) && class != failure.SchemaInvalid && class != failure.InvariantViolated
}

// failed decides about a job whose attempt failed with class. works says that the endpoint
// executed other jobs like it: only then a refusal without a reason may be the job's. A refusal
// that is not the job's counts no attempt, but is bounded (see [rewrite.RunConfig.Refuse]).
func (a *Activities) failed(job rewrite.Job, class failure.Class, works bool) rewrite.Outcome {
	if slices.Contains(refusing, class) || class == failure.EndpointRefused && !works {
		return a.cfg.Run.Refuse(job, string(class))
	}
	return a.cfg.Run.AfterFailure(job, string(class), slices.Contains(own, class))
}

// executed reports whether a job whose attempt ended with class, empty for a success, was executed
// by the model.
func executed(class failure.Class) bool {
	return slices.Contains([]failure.Class{"", failure.ContentPolicy, failure.SchemaInvalid, failure.TooLarge}, class)
}

// settle writes how attempts ended, and logs how many jobs the claim or the batch has lost.
func (a *Activities) settle(ctx context.Context, claim rewrite.Claim, batchID string, outcomes ...rewrite.Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	return a.retryWrite(ctx, func(ctx context.Context) error {
		written, err := a.parts.Queue.Settle(ctx, claim, batchID, outcomes)
		if lost := len(outcomes) - int(written); err == nil && lost > 0 {
			a.lg.WarnContext(ctx, "dropped results of jobs that another worker or an operator has taken", "run_id", claim.RunID, "batch_id", batchID, "jobs", lost)
		}
		return err
	})
}

const (
	firstWait    = 200 * time.Millisecond // between two attempts of retryWrite
	longestWait  = 10 * time.Second
	writeTimeout = 10 * time.Second
	writeLimit   = 30 * time.Minute // of all attempts: the activity ends within an hour
)

// retryWrite retries write until it succeeds, the activity is canceled or writeLimit is over: a
// result that is already billed must not be lost. The write is not canceled with the activity, so
// that a stopping worker can finish it.
func (a *Activities) retryWrite(ctx context.Context, write func(context.Context) error) error {
	begun := time.Now()
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		err := write(attempt)
		cancel()
		if err == nil || !failure.ClassOf(err).Retryable() || time.Since(begun) > writeLimit {
			return err
		}
		a.lg.WarnContext(ctx, "write failed and is repeated", "wait", wait, "error_class", failure.ClassOf(err), "error", err.Error())
		select {
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("give up: %w", ctx.Err()))
		case <-time.After(wait):
		}
	}
}
