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
	server "github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
)

// An Interceptor decides for every failed attempt whether Temporal retries it, and after
// which delay: the error's class decides the first, [failure.Backoff] and the endpoint's
// Retry-After the second. It also sends heartbeats of long activities, so that Temporal
// notices a lost worker.
//
// Failures that Temporal itself declares (a lost worker, a missed heartbeat) do not pass
// the interceptor: the workflow retries them.
type Interceptor struct {
	interceptor.WorkerInterceptorBase
	// Scrub redacts text that goes into Temporal's history. Required.
	Scrub func(string) string
	// Log gets one line per attempt. Default: none.
	Log *slog.Logger
	// RetryAll makes every failure retryable: for bookkeeping, which would lose what it
	// has to record.
	RetryAll bool
	// Grace is how long an attempt may continue after its worker is asked to stop. It
	// must be shorter than the worker's WorkerStopTimeout, so that the attempt can still
	// report to Temporal. Default: 0.
	Grace time.Duration
	// Stopping ends when the process is asked to stop. Default: when the worker is. A worker
	// that a circuit breaker stops lets its attempts end.
	Stopping <-chan struct{}
	// Breaker counts how the attempts end. Default: none.
	Breaker circuitBreaker
}

// circuitBreaker is the part of [breaker.Breaker] that counts attempts.
type circuitBreaker interface {
	Begin(review string) (end func(err error) (provisional bool), err error)
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
	ctx, done := server.UntilStopped(ctx, in.policy.Stopping, in.policy.Grace)
	defer done()
	began := time.Now()
	result, err := in.attempt(ctx, input)
	if err != nil {
		result = nil
	}
	if in.policy.Log != nil {
		logAttempt(ctx, in.policy.Log, input.Args, began, err)
	}
	measureAttempt(ctx, began, err)
	return result, err
}

// attempt makes the attempt and returns the error that is reported to Temporal.
func (in *inbound) attempt(ctx context.Context, input *interceptor.ExecuteActivityInput) (result any, err error) {
	i := in.policy
	end := func(error) (provisional bool) { return false }
	if i.Breaker != nil {
		end, err = i.Breaker.Begin(activity.GetInfo(ctx).WorkflowExecution.ID)
		if err != nil {
			return nil, i.asTemporal(ctx, failure.New(failure.WorkerStopped, err), false)
		}
	}
	result, err = in.call(ctx, input)
	err, interrupted := interruption(ctx, err)
	ended := err
	if interrupted {
		ended = failure.New(failure.WorkerStopped, err)
	}
	provisional := end(ended)
	if err == nil || interrupted && temporal.IsCanceledError(err) {
		return result, err
	}
	return nil, i.asTemporal(ctx, err, provisional)
}

// call returns a panic as an error with its stack.
func (in *inbound) call(ctx context.Context, input *interceptor.ExecuteActivityInput) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failure.Errorf(failure.InvariantViolated, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return in.Next.ExecuteActivity(ctx, input)
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

// asTemporal makes a new outermost error: Temporal ignores the flags of a wrapped
// ApplicationError. Message and details are scrubbed and bounded. A provisional failure is
// retried whatever its class, and does not count.
func (i *Interceptor) asTemporal(ctx context.Context, err error, provisional bool) error {
	info := activity.GetInfo(ctx)
	report := failure.NewReport(err, int(info.Attempt), time.Now().UTC(), i.Scrub)
	p := before(ctx)
	if provisional || report.Class == failure.WorkerStopped {
		p.Stopped++
	} else if p.Failures++; p.FirstFailureAt.IsZero() {
		p.FirstFailureAt = report.At
	}
	report.Stopped = p.Stopped
	if !p.FirstFailureAt.IsZero() {
		report.FirstAt = p.FirstFailureAt
	}
	activity.RecordHeartbeat(ctx, p)
	var wait time.Duration
	if e, ok := errors.AsType[*failure.Error](err); ok {
		wait = e.RetryAfter
	}
	return temporal.NewApplicationErrorWithOptions(report.Message(), string(report.Class), temporal.ApplicationErrorOptions{
		NonRetryable:   !i.RetryAll && !provisional && !failure.Retryable(err),
		NextRetryDelay: failure.Backoff(stageAttempt(ctx), rand.Float64(), wait),
		Details:        []any{report},
	})
}

// stageAttempt returns the number of this attempt among those of its stage, from 1: what
// earlier activities of the stage have used is missing in the retry policy. Attempts that
// ended because their worker stopped do not count.
func stageAttempt(ctx context.Context) int {
	used := 0
	if r := activity.GetInfo(ctx).RetryPolicy; r != nil && r.MaximumAttempts > 0 {
		used = max(0, failure.AttemptBudget-int(r.MaximumAttempts))
	}
	return used + before(ctx).Failures + 1
}

// before returns the progress of the attempts before this one. An attempt that failed without
// this interceptor records no failure time: then it is the start of this attempt. If an
// operator reset the activity, the attempts begin with 1 again, and the heartbeats may remain.
func before(ctx context.Context) progress {
	info := activity.GetInfo(ctx)
	var p progress
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &p) != nil {
		p = progress{}
	}
	p.Stopped = min(p.Stopped, int(info.Attempt)-1)
	p.Failures, p.Done, p.Total = int(info.Attempt)-1-p.Stopped, 0, 0
	if p.FirstFailureAt.IsZero() && p.Failures > 0 {
		p.FirstFailureAt = info.StartedTime.UTC()
	}
	return p
}

// ReportOfLost returns what is known of an attempt that timed out: the heartbeats have the
// attempts before it.
func ReportOfLost(timeout *temporal.TimeoutError) failure.Report {
	var p progress
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&p) != nil {
		p = progress{}
	}
	return failure.Report{Attempt: p.Failures + p.Stopped + 1, Stopped: p.Stopped, FirstAt: p.FirstFailureAt}
}

// spent returns what this activity used of the stage's attempt budget.
func spent(ctx context.Context) Spent {
	p := before(ctx)
	return Spent{Failures: p.Failures, FirstFailureAt: p.FirstFailureAt}
}

// logAttempt logs how an attempt ended, with the keys that all stages share. err is the
// scrubbed and bounded error that is reported to Temporal. Workers drop the SDK's own line
// about a failed attempt.
func logAttempt(ctx context.Context, lg *slog.Logger, args []any, began time.Time, err error) {
	info := activity.GetInfo(ctx)
	name := info.ActivityID
	if info.IsLocalActivity { // its ID is a number
		name = info.ActivityType.Name
	}
	line := lg.With("stage", name, "attempt", info.Attempt,
		"workflow_id", info.WorkflowExecution.ID, "run_id", info.WorkflowExecution.RunID, "duration_ms", time.Since(began).Milliseconds())
	if req, ok := requestOf(args); ok {
		line = line.With("changelist", req.Changelist, "review_version", req.Version)
	}
	if err == nil {
		line.InfoContext(ctx, "attempt done")
		return
	}
	message := err.Error()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		message = app.Message() // without the class
	}
	line.WarnContext(ctx, "attempt failed", "error_class", resultOf(err), "error", message)
}

// requestOf finds the review in an activity's input.
func requestOf(args []any) (review.Request, bool) {
	for _, arg := range args {
		switch p := arg.(type) {
		case review.Request:
			return p, true
		case interface{ request() review.Request }:
			return p.request(), true
		}
	}
	return review.Request{}, false
}
