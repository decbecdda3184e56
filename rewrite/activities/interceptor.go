package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// An Interceptor reports the failed attempts of activities to Temporal, which retries all of
// them: an attempt of an activity is not an attempt of a job. It sends the heartbeats of long
// activities, and cancels an attempt whose worker stops.
type Interceptor struct {
	interceptor.WorkerInterceptorBase
	// Scrub redacts text that goes into Temporal's history. Required.
	Scrub func(string) string
	// Grace is how long an attempt may continue after its worker is asked to stop. It must
	// be shorter than the worker's WorkerStopTimeout, so that the attempt can still report.
	Grace time.Duration
}

// errStopping is the cause of an attempt that ends because its worker stops; Temporal's are those of
// a run that was canceled, terminated or reset.
var errStopping = errors.New("the worker stops")

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (i *Interceptor) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &inbound{policy: i}
	in.Next = i.WorkerInterceptorBase.InterceptActivity(ctx, next)
	return in
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	policy *Interceptor
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (in *inbound) ExecuteActivity(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	attempt, cancel := context.WithCancelCause(ctx)
	running, end := context.WithCancel(context.WithoutCancel(ctx)) // a canceled attempt runs until its calls have ended
	go in.policy.watch(running, cancel)
	result, err := in.Next.ExecuteActivity(attempt, input)
	end()
	cause := context.Cause(attempt)
	cancel(nil)
	if temporal.IsCanceledError(cause) {
		return nil, cause
	}
	if err == nil {
		return result, nil
	}
	var wait time.Duration
	if e, ok := errors.AsType[*failure.Error](err); ok {
		wait = e.RetryAfter
	}
	number := int(activity.GetInfo(ctx).Attempt)
	report := failure.NewReport(err, number, time.Now().UTC(), in.policy.Scrub)
	return nil, temporal.NewApplicationErrorWithOptions(report.Message(), string(report.Class), temporal.ApplicationErrorOptions{
		NextRetryDelay: failure.Backoff(number, rand.Float64(), wait),
	})
}

// watch sends three heartbeats per heartbeat timeout of the attempt, and cancels it once the
// worker has been asked to stop and the grace period is over. The SDK would cancel it after
// its own wait; a report of the attempt would then be lost with the process.
func (i *Interceptor) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	var beat <-chan time.Time
	if timeout := activity.GetInfo(ctx).HeartbeatTimeout; timeout > 0 {
		ticker := time.NewTicker(timeout / 3)
		defer ticker.Stop()
		beat = ticker.C
	}
	stopping, over := activity.GetWorkerStopChannel(ctx), (<-chan time.Time)(nil)
	for {
		select {
		case <-beat:
			activity.RecordHeartbeat(ctx)
		case <-stopping:
			stopping, over = nil, time.After(i.Grace)
		case <-over:
			cancel(errStopping)
		case <-ctx.Done():
			return
		}
	}
}
