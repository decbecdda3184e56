package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

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
