package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A policy is the task queue of an activity, its timeouts and its attempts.
//
// The policies of this file are the only place with timeouts and attempts of activities.
// [activities.Interceptor] computes the delay before the next attempt by
// [failure.Backoff]. If Temporal itself declares the failure, such as a missed heartbeat,
// it applies the retry policy, whose intervals come from failure.Backoff with one random
// number per activity and run.
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
// attempt to mail sends to all recipients, one after another.
var (
	fetchPolicy  = stagePolicy(activities.QueueFetch, 15*time.Minute)
	redactPolicy = stagePolicy(activities.QueueRedact, 5*time.Minute)
	modelPolicy  = stagePolicy(activities.QueueLLM, time.Hour)
	adoptPolicy  = stagePolicy(activities.QueueNotify, 5*time.Minute)
	mailPolicy   = stagePolicy(activities.QueueNotify, time.Hour)
)

func channelPolicy(c review.Channel) policy {
	return stagePolicy(activities.ChannelQueue(c), 15*time.Minute)
}

// stagePolicy leaves total unlimited: with a limit, a Retry-After beyond it would fail the
// stage at once.
func stagePolicy(queue string, timeout time.Duration) policy {
	return policy{queue: queue, timeout: timeout, heartbeat: heartbeat, attempts: failure.AttemptBudget}
}

// Work on the database is retried until it succeeds.
var bookkeepingPolicy = policy{queue: activities.QueueBookkeeping, timeout: time.Minute}

// While workers are replaced, the stages redact and llm can have different rules. A review
// tries for half an hour until they have the same.
const (
	redactAgainPause = time.Minute
	redactAgainLimit = 30
)

// localTimeout is the timeout of the first try of [bookLocally]. The SDK fails a workflow
// task that takes 5 s.
const localTimeout = 4 * time.Second

// Scheduled work gives up in time for the next run of its schedule, which continues it.
var (
	searchPolicy = policy{
		queue: activities.QueueFetch, timeout: 5 * time.Minute, total: 30 * time.Minute, heartbeat: heartbeat,
		attempts: 3,
	}
	reconcilePolicy = policy{
		queue: activities.QueueNotify, timeout: 30 * time.Minute, total: time.Hour, heartbeat: heartbeat,
		attempts: 3,
	}
	retentionPolicy = policy{
		queue: activities.QueueRetention, timeout: 30 * time.Minute, total: 90 * time.Minute, heartbeat: heartbeat,
	}
)

// A probe is retried until the endpoint responds.
func probePolicy(queue string) policy {
	return policy{queue: activities.ProbeQueue(queue), timeout: time.Minute, heartbeat: heartbeat}
}

// botPriority is the priority of bots' changes, of 1 to 5; people's changes have the
// server's default, 3. A server without priorities ignores it.
const botPriority = 5

// on returns ctx with the options of an activity. The ID is fixed, so that it stays
// the same after a reset and is readable in the Temporal UI.
func (p policy) on(ctx workflow.Context, id string) workflow.Context {
	first, longest := failure.Delays(id, workflow.GetInfo(ctx).WorkflowExecution.RunID)
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             id,
		Summary:                summaryOf(id),
		TaskQueue:              p.queue,
		StartToCloseTimeout:    p.timeout,
		ScheduleToCloseTimeout: p.total,
		HeartbeatTimeout:       p.heartbeat,
		// Replays do not compare it, so that histories with other delays replay.
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: first, BackoffCoefficient: failure.DelayMultiplier, MaximumInterval: longest,
			MaximumAttempts: int32(p.attempts), //nolint:gosec // at most failure.AttemptBudget
		},
		WaitForCancellation: p.waitForCancellation,
	})
}

// without returns the policy with what earlier activities of the stage left of the
// attempt budget: at least 1, because 0 is unlimited. They may have used more than the
// budget if an operator gave them more attempts.
func (p policy) without(spent activities.Spent) policy {
	p.attempts = max(1, p.attempts-spent.Failures)
	return p
}

func (p policy) waitingForCancellation(waitForCancellation bool) policy {
	p.waitForCancellation = waitForCancellation
	return p
}

// book runs an activity of [activities.Bookkeeping] and stores its result in out, which
// may be nil.
func book(ctx workflow.Context, id string, activity, in, out any) error {
	return workflow.ExecuteActivity(bookkeepingPolicy.on(ctx, id), activity, in).Get(ctx, out)
}

// bookLocally runs the activity within the current workflow task, which saves the server
// an activity and a workflow task. If that fails it runs as an ordinary activity, so
// that an outage of any length adds one failed try to the history.
func bookLocally(ctx workflow.Context, id string, activity, in, out any) error {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summaryOf(id),
	})
	if err := workflow.ExecuteLocalActivity(local, activity, in).Get(ctx, out); err == nil {
		return nil
	}
	return book(ctx, id, activity, in, out)
}
