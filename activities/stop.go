package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// errStopping ends the context of an attempt whose worker is told to stop.
var errStopping = errors.New("worker is told to stop")

// untilStopped ends ctx when the worker has been told to stop and grace is
// over. The SDK would do so too, but only when it no longer waits for the
// attempt: what that says then is lost with the process.
func untilStopped(ctx context.Context, grace time.Duration) (attempt context.Context, done func()) {
	attempt, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
		case <-attempt.Done():
			return
		}
		select {
		case <-time.After(grace):
			cancel(errStopping)
		case <-attempt.Done():
		}
	}()
	return attempt, func() { cancel(nil) }
}

// interruption tells an attempt that was ended from outside from one that
// failed, and says by whom: Temporal cancels it, and that stays a cancellation;
// or a stopping worker, an operator's pause or reset of the activity ends this
// attempt only, and another may follow.
func interruption(ctx context.Context, err error) (_ error, interrupted bool) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		return err, false
	}
	if !errors.Is(err, context.Canceled) && failure.ClassOf(err) != failure.Unknown {
		return err, false // it had come to an end of its own
	}
	cause := context.Cause(ctx)
	if temporal.IsCanceledError(cause) {
		return cause, true
	}
	return failure.Errorf(failure.WorkerStopped, "attempt interrupted: %w", cause), true
}
