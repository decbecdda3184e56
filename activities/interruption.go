package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// errStopping is the cause of a context that ended because the worker stops.
var errStopping = errors.New("worker is stopping")

// untilStopped cancels ctx when the worker or, if stopping is not nil, the process has been
// asked to stop and grace has passed. The SDK would cancel it after its own wait for the
// attempt; a report of the attempt would then be lost with the process.
func untilStopped(ctx context.Context, stopping <-chan struct{}, grace time.Duration) (attempt context.Context, done func()) {
	attempt, cancel := context.WithCancelCause(ctx)
	if stopping == nil {
		stopping = activity.GetWorkerStopChannel(ctx)
	}
	go func() {
		select {
		case <-stopping:
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

// interruption reports whether the attempt was ended from outside. If Temporal canceled
// the activity, the error is that cancellation. If the worker stops, or an operator pauses
// or resets the activity, only this attempt ends: the error is retryable.
func interruption(ctx context.Context, err error) (_ error, interrupted bool) {
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		return err, false
	}
	if !errors.Is(err, context.Canceled) && failure.ClassOf(err) != failure.Unknown {
		return err, false // the attempt failed before
	}
	cause := context.Cause(ctx)
	if temporal.IsCanceledError(cause) {
		return cause, true
	}
	return failure.Errorf(failure.WorkerStopped, "attempt interrupted: %w", cause), true
}
