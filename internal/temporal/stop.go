package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
)

// ErrStopping is the cause of an attempt that ends because its worker stops; Temporal's causes are
// those of an activity that was canceled.
var ErrStopping = errors.New("worker is stopping")

// UntilStopped cancels the attempt of an activity when the worker or, if stopping is not nil, the
// process has been asked to stop and grace has passed. The SDK would cancel it after its own wait for
// the attempt; a report of the attempt would then be lost with the process.
func UntilStopped(ctx context.Context, stopping <-chan struct{}, grace time.Duration) (attempt context.Context, done func()) {
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
			cancel(ErrStopping)
		case <-attempt.Done():
		}
	}()
	return attempt, func() { cancel(nil) }
}
