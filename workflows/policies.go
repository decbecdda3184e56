package workflows

import (
	"errors"
	"math/rand/v2"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A policy is the task queue of an activity, its timeouts and its attempts. The policies of
// this file are the only place with timeouts of activities; [failure.AttemptBudget] limits the
// attempts of a stage. [policy.execute] applies them.
type policy struct {
	queue               string
	timeout             time.Duration // of one attempt
	total               time.Duration // of all attempts and the delays between them; 0 is unlimited
	heartbeat           time.Duration // longest time between heartbeats; 0 is none
	attempts            int           // the first included; 0 is unlimited
	waitForCancellation bool          // a cancellation waits until the attempt has ended
}

// heartbeat limits how long a lost worker of a long activity goes unnoticed.
const heartbeat = 15 * time.Second

// The stages of a review. A slow model takes most of an hour for a large change, and one
// attempt to mail sends to all recipients, one after another. A cancellation waits for a
// message that is being sent, so that the message is recorded.
var (
	fetchPolicy  = stagePolicy(contract.QueueFetch, 15*time.Minute)
	redactPolicy = stagePolicy(contract.QueueRedact, 5*time.Minute)
	llmPolicy    = stagePolicy(contract.QueueLLM, time.Hour)
	adoptPolicy  = stagePolicy(contract.QueueRecords, 5*time.Minute)
	mailPolicy   = sendPolicy(contract.QueueNotify, time.Hour)
)

func channelPolicy(c review.Channel) policy { return sendPolicy(contract.QueueOf(c), 15*time.Minute) }

func sendPolicy(queue string, timeout time.Duration) policy {
	p := stagePolicy(queue, timeout)
	p.waitForCancellation = true
	return p
}

// stagePolicy leaves total unlimited: with a limit, a Retry-After beyond it would fail the
// stage at once.
func stagePolicy(queue string, timeout time.Duration) policy {
	return policy{queue: queue, timeout: timeout, heartbeat: heartbeat, attempts: failure.AttemptBudget}
}

// Work on the database is retried until it succeeds.
var bookkeepingPolicy = policy{queue: contract.QueueBookkeeping, timeout: time.Minute}

// localTimeout is the timeout of the first try of [bookLocally]. The SDK fails a workflow
// task that takes 5 s.
const localTimeout = 4 * time.Second

// Scheduled work gives up in time for the next run of its schedule, which continues it.
var (
	searchPolicy = policy{
		queue: contract.QueueFetch, timeout: 5 * time.Minute, total: 30 * time.Minute, heartbeat: heartbeat,
		attempts: failure.AttemptBudget,
	}
	reconcilePolicy = policy{
		queue: contract.QueueRecords, timeout: 30 * time.Minute, total: time.Hour, heartbeat: heartbeat,
		attempts: failure.AttemptBudget,
	}
	retentionPolicy = policy{
		queue: contract.QueueRetention, timeout: 30 * time.Minute, total: 90 * time.Minute, heartbeat: heartbeat,
	}
)

// botPriority is the priority of bots' changes, of 1 to 5; people's changes have the
// server's default, 3. A server without priorities ignores it.
const botPriority = 5

// execute runs an activity until it succeeds, fails for good, or has used its attempts. It adds
// the failed attempts to used, which activities that share a budget have in common. The
// activity has at least one attempt.
//
// The retry policy follows (processing 8.2). After a failure that the attempt reports, the
// server waits for the jittered delay of [activities.Interceptor] instead. An attempt that is
// lost, such as in a crash of its worker, reports nothing, and the server's delay would have
// no jitter: execute waits itself, then runs the activity again with the rest of its attempts. It
// does the same if attempts that do not count, because their worker stopped, used up the attempts of
// the server.
func (p policy) execute(ctx workflow.Context, id string, used *activities.Spent, out, activity any, args ...any) error {
	begun := workflow.Now(ctx)
	for {
		err := workflow.ExecuteActivity(p.on(ctx, id, used.Failures, begun), activity, args...).Get(ctx, out)
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		report := reportOf(ctx, err)
		used.Add(activities.Spent{Failures: report.Failures(), FirstFailureAt: report.FirstAt})
		again := isLost(err) || report.Stopped > 0 && !isFinal(err)
		if !again || p.attempts > 0 && used.Failures >= p.attempts || p.total > 0 && workflow.Now(ctx).Sub(begun) >= p.total {
			return err
		}
		wait := workflow.TimerOptions{Summary: "delay before the next attempt"}
		if err := workflow.NewTimerWithOptions(ctx, delayAfter(ctx, err, used.Failures), wait).Get(ctx, nil); err != nil {
			return err
		}
	}
}

// on returns ctx with the options of an activity, of whose attempts some are used and whose
// total time runs since begun. The ID is fixed, so that it stays the same after a reset and
// is readable in the Temporal UI.
func (p policy) on(ctx workflow.Context, id string, used int, begun time.Time) workflow.Context {
	o := workflow.ActivityOptions{
		ActivityID:          id,
		TaskQueue:           p.queue,
		StartToCloseTimeout: p.timeout,
		HeartbeatTimeout:    p.heartbeat,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: failure.InitialDelay, BackoffCoefficient: failure.DelayMultiplier, MaximumInterval: failure.MaxDelay,
			NonRetryableErrorTypes: []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"},
		},
		WaitForCancellation: p.waitForCancellation,
		Priority:            workflow.GetActivityOptions(ctx).Priority, // which these options replace
	}
	if p.attempts > 0 { // 0 is unlimited; an operator may have allowed more attempts than the budget
		o.RetryPolicy.MaximumAttempts = int32(max(1, p.attempts-used)) //nolint:gosec // at most failure.AttemptBudget
	}
	if p.total > 0 {
		o.ScheduleToCloseTimeout = max(time.Second, p.total-workflow.Now(ctx).Sub(begun))
	}
	return workflow.WithActivityOptions(ctx, o)
}

// delayAfter is the delay before an activity runs again: the one that the last attempt
// reported or, if it was lost, one with full jitter.
func delayAfter(ctx workflow.Context, err error, failures int) time.Duration {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && !isLost(err) {
		return app.NextRetryDelay()
	}
	var u float64
	_ = workflow.SideEffect(ctx, func(workflow.Context) any { return rand.Float64() }).Get(&u) // a number can be decoded
	return failure.Backoff(failures, u, 0)
}

// reportOf returns the interceptor's report on the last attempt of an activity. It makes the
// report of an attempt that Temporal itself declared failed.
func reportOf(ctx workflow.Context, err error) failure.Report {
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if ok && !timedOut { // inside a timeout, app is the error of an earlier attempt
		var report failure.Report
		if app.HasDetails() && app.Details(&report) == nil && report.Class != "" {
			return report
		}
	}
	report := failure.Report{Class: failure.Unknown, Stack: "the activity ended without a report", Attempt: 1}
	if timedOut {
		report = activities.ReportOfLost(timeout)
		report.Class = failure.AttemptTimeout
		report.Stack = "attempt timed out: " + timeout.TimeoutType().String()
	}
	if timedOut && ok {
		report.Stack += "; an earlier attempt: " + app.Message()
	}
	if report.At = workflow.Now(ctx).UTC(); report.FirstAt.IsZero() {
		report.FirstAt = report.At
	}
	return report
}

// isLost reports whether Temporal declared that the last attempt of an activity is lost.
func isLost(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && (timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT || timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE)
}

// isFinal reports whether the activity ended because a retry does not help.
func isFinal(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.NonRetryable()
}

// book runs an activity of [activities.Bookkeeper] and stores its result in out, which
// may be nil.
func book(ctx workflow.Context, id string, activity, in, out any) error {
	return bookkeepingPolicy.execute(ctx, id, &activities.Spent{}, out, activity, in)
}

// bookLocally runs the activity within the current workflow task, which saves the server
// an activity and a workflow task. If that fails it runs as an ordinary activity, so
// that an outage of any length adds one failed try to the history.
func bookLocally(ctx workflow.Context, id string, activity, in, out any) error {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	if err := workflow.ExecuteLocalActivity(local, activity, in).Get(ctx, out); err == nil {
		return nil
	}
	return book(ctx, id, activity, in, out)
}
