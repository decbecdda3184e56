package activities

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// An Interceptor is the one place where an error becomes a verdict for
// Temporal: final or retried, and when (criticizer-processing 8.1, 8.2). It
// also keeps long activities heartbeating, so that a dead worker is noticed.
//
// Failures that Temporal declares itself (a lost worker, a missed heartbeat)
// never come by here; they follow the activity's own retry policy.
type Interceptor struct {
	interceptor.WorkerInterceptorBase
	// Scrub redacts text that goes into Temporal's history. Required.
	Scrub func(string) string
	// Log is told how each attempt ended. Default: nobody is.
	Log *slog.Logger
	// Patient makes every failure retryable: for bookkeeping, which waits for
	// its repair instead of losing what it has to record.
	Patient bool
	// Grace is how long an attempt may go on once its worker is told to stop.
	// It is to be shorter than the worker's WorkerStopTimeout, so that what
	// became of the attempt is still reported. Default: not at all.
	Grace time.Duration
	// Watch, if set, says when attempts may begin and is told how they end.
	Watch watcher
}

// watcher looks for outages. Admit waits while there is one. Failed may take
// its time: the failure is reported to Temporal when it returns.
type watcher interface {
	Admit(ctx context.Context) error
	Succeeded()
	Failed(ctx context.Context, workflowID string, class failure.Class)
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
	ctx, stop := keepHeartbeating(ctx)
	defer stop()
	ctx, done := untilStopped(ctx, in.policy.Grace)
	defer done()
	began := time.Now()
	result, err := in.attempt(ctx, input)
	if wait, ok := errors.AsType[notYet](err); ok {
		return nil, wait.asTemporal()
	}
	if err != nil {
		result, err = nil, in.policy.failed(ctx, err)
	}
	if in.policy.Log != nil {
		logAttempt(ctx, in.policy.Log, input.Args, began, err)
	}
	measureAttempt(ctx, began, err)
	return result, err
}

func (in *inbound) attempt(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	watch := in.policy.Watch
	if watch == nil {
		return in.call(ctx, input)
	}
	if err := watch.Admit(ctx); err != nil {
		return nil, err
	}
	result, err := in.call(ctx, input)
	if err == nil {
		watch.Succeeded()
	}
	return result, err
}

// failed is what Temporal is told of an attempt that ended with err.
func (i *Interceptor) failed(ctx context.Context, err error) error {
	err, interrupted := interruption(ctx, err)
	switch {
	case interrupted && temporal.IsCanceledError(err):
		return err
	case !interrupted && i.Watch != nil:
		i.Watch.Failed(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, failure.ClassOf(err))
	}
	return i.asTemporal(ctx, err)
}

// call turns a panic into an error with its stack; a panic is a bug.
func (in *inbound) call(ctx context.Context, input *interceptor.ExecuteActivityInput) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failure.Errorf(failure.InvariantViolated, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return in.Next.ExecuteActivity(ctx, input)
}

// asTemporal re-makes the outermost error, for a wrapped ApplicationError loses
// its flags. Message and details are scrubbed and bounded.
func (i *Interceptor) asTemporal(ctx context.Context, err error) error {
	info := activity.GetInfo(ctx)
	report := failure.NewReport(err, int(info.Attempt), time.Now().UTC(), i.Scrub)
	if first := firstFailure(ctx); !first.IsZero() {
		report.FirstAt = first
	}
	rememberFirstFailure(ctx, report.FirstAt)
	var wait time.Duration
	if e, ok := errors.AsType[*failure.Error](err); ok {
		wait = e.RetryAfter
	}
	return temporal.NewApplicationErrorWithOptions(report.Message(), string(report.Class), temporal.ApplicationErrorOptions{
		NonRetryable:   !i.Patient && !failure.Retryable(err),
		NextRetryDelay: failure.Backoff(int(info.Attempt), rand.Float64(), wait),
		Details:        detailsOf(err, report),
	})
}

// detailed is an error that tells the workflow more than the report does.
type detailed interface {
	error
	detail() any
}

func detailsOf(err error, report failure.Report) []any {
	if more, ok := errors.AsType[detailed](err); ok {
		return []any{report, more.detail()}
	}
	return []any{report}
}

// firstFailure is when the first attempt of this activity failed; zero on the
// first attempt. An attempt that died without a word leaves no time, so the
// start of the attempt after it stands in.
func firstFailure(ctx context.Context) time.Time {
	info := activity.GetInfo(ctx)
	var p progress
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &p) == nil && !p.FirstFailureAt.IsZero() {
		return p.FirstFailureAt
	}
	if info.Attempt > 1 {
		return info.StartedTime.UTC()
	}
	return time.Time{}
}

// FirstFailureBefore is when the first attempt failed of an activity whose last
// one timed out, as its heartbeats tell; zero if they do not.
func FirstFailureBefore(timeout *temporal.TimeoutError) time.Time {
	var p progress
	if timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&p) == nil {
		return p.FirstFailureAt
	}
	return time.Time{}
}

func rememberFirstFailure(ctx context.Context, at time.Time) {
	activity.RecordHeartbeat(ctx, progress{FirstFailureAt: at})
}

// spent tells the activity that shares the stage what is left of its budget.
func spent(ctx context.Context) Spent {
	return Spent{Failures: int(activity.GetInfo(ctx).Attempt) - 1, FirstFailureAt: firstFailure(ctx)}
}
