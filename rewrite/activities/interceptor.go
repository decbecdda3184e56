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
	server "github.com/criticizer/criticizer/internal/temporal"
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
	attempt, done := server.UntilStopped(ctx, nil, in.policy.Grace)
	running, end := context.WithCancel(context.WithoutCancel(ctx)) // a canceled attempt runs until its calls have ended
	go heartbeat(running)
	result, err := in.Next.ExecuteActivity(attempt, input)
	end()
	cause := context.Cause(attempt)
	done()
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

// heartbeat sends three heartbeats per heartbeat timeout, if the activity has one, until ctx ends.
func heartbeat(ctx context.Context) {
	if timeout := activity.GetInfo(ctx).HeartbeatTimeout; timeout > 0 {
		every(ctx, timeout/3, func() { activity.RecordHeartbeat(ctx) })
	}
}

// every calls do in each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	for beat := time.Tick(interval); ; {
		select {
		case <-beat:
			do()
		case <-ctx.Done():
			return
		}
	}
}
