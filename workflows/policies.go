package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A policy says on which task queue an activity runs, how long and how often.
//
// The policies of this file are the only place with timeouts, attempts and retry
// intervals of activities. Temporal hands the intervals to each attempt, and
// [activities.Interceptor] turns them into the delay before the next one: full jitter,
// or the Retry-After of the endpoint if that is longer. If Temporal itself declares
// the failure, such as a missed heartbeat, it applies the intervals without jitter.
type policy struct {
	queue     string
	timeout   time.Duration // of one attempt
	total     time.Duration // of all attempts and the delays between them; 0 is unlimited
	heartbeat time.Duration // longest time between heartbeats; 0 is none
	attempts  int           // the first included; 0 is unlimited
	intervals failure.Intervals
	toEnd     bool // a cancellation waits until the attempt has ended
}

// heartbeat limits how long a lost worker of a long activity goes unnoticed.
const heartbeat = 15 * time.Second

// The stages of a review. A slow model takes most of an hour for a large change, and one
// attempt to mail sends to all recipients, one after another.
var (
	fetchPolicy  = stagePolicy(activities.QueueFetch, 15*time.Minute, failure.StandardIntervals)
	redactPolicy = stagePolicy(activities.QueueRedact, 5*time.Minute, failure.StandardIntervals)
	modelPolicy  = stagePolicy(activities.QueueLLM, time.Hour, failure.StandardIntervals)
	adoptPolicy  = stagePolicy(activities.QueueNotify, 5*time.Minute, failure.StandardIntervals)
	mailPolicy   = stagePolicy(activities.QueueNotify, time.Hour, failure.StandardIntervals)
)

func channelPolicy(c review.Channel) policy {
	return stagePolicy(activities.ChannelQueue(c), 15*time.Minute, failure.StandardIntervals)
}

// stagePolicy leaves total unlimited: with a limit, a Retry-After beyond it would fail the
// stage at once.
func stagePolicy(queue string, timeout time.Duration, intervals failure.Intervals) policy {
	return policy{queue: queue, timeout: timeout, heartbeat: heartbeat, attempts: failure.AttemptBudget, intervals: intervals}
}

// Work on the database is retried until it succeeds.
var bookkeepingPolicy = policy{queue: activities.QueueBookkeeping, timeout: time.Minute, intervals: failure.StandardIntervals}

// localPolicy is that of the first try of [bookLocally]. The SDK fails a workflow task
// that takes 5 s.
var localPolicy = policy{timeout: 4 * time.Second, attempts: 1, intervals: failure.StandardIntervals}

// Scheduled work gives up in time for the next run of its schedule, which continues it.
var (
	searchPolicy = policy{
		queue: activities.QueueFetch, timeout: 5 * time.Minute, total: 30 * time.Minute, heartbeat: heartbeat,
		attempts: 3, intervals: failure.StandardIntervals,
	}
	reconcilePolicy = policy{
		queue: activities.QueueNotify, timeout: 30 * time.Minute, total: time.Hour, heartbeat: heartbeat,
		attempts: 3, intervals: failure.StandardIntervals,
	}
	retentionPolicy = policy{
		queue: activities.QueueRetention, timeout: 30 * time.Minute, total: 90 * time.Minute, heartbeat: heartbeat,
		intervals: failure.StandardIntervals,
	}
)

// A probe is retried until the endpoint responds.
func probePolicy(queue string) policy {
	return policy{queue: activities.ProbeQueue(queue), timeout: time.Minute, heartbeat: heartbeat, intervals: failure.StandardIntervals}
}

// botPriority is the priority of bots' changes, of 1 to 5; people's changes have the
// server's default, 3. A server without priorities ignores it.
const botPriority = 5

// on returns ctx with the options of an activity. The ID is fixed, so that it stays
// the same after a reset and is readable in the Temporal UI.
func (p policy) on(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             id,
		Summary:                summaryOf(id),
		TaskQueue:              p.queue,
		StartToCloseTimeout:    p.timeout,
		ScheduleToCloseTimeout: p.total,
		HeartbeatTimeout:       p.heartbeat,
		RetryPolicy:            p.retry(),
		WaitForCancellation:    p.toEnd,
	})
}

// without returns the policy with what earlier activities of the stage left of the
// attempt budget: at least 1, because 0 is unlimited. They may have used more than the
// budget if an operator gave them more attempts.
func (p policy) without(spent activities.Spent) policy {
	p.attempts = max(1, p.attempts-spent.Failures)
	return p
}

func (p policy) toItsEnd(toEnd bool) policy {
	p.toEnd = toEnd
	return p
}

func (p policy) retry() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    p.intervals.Initial,
		BackoffCoefficient: p.intervals.Multiplier,
		MaximumInterval:    p.intervals.Max,
		MaximumAttempts:    int32(p.attempts), //nolint:gosec // at most failure.AttemptBudget
	}
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
		StartToCloseTimeout: localPolicy.timeout,
		RetryPolicy:         localPolicy.retry(),
		Summary:             summaryOf(id),
	})
	if err := workflow.ExecuteLocalActivity(local, activity, in).Get(ctx, out); err == nil {
		return nil
	}
	return book(ctx, id, activity, in, out)
}
