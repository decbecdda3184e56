package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Every timeout and retry is in this file. ScheduleToClose stays unset for all
// stages of a review: a long Retry-After would otherwise fail at once.

// heartbeat is how long a dead worker can go unnoticed in a long activity.
const heartbeat = 15 * time.Second

// behindPeople is the priority of bots' changes, of 1 to 5; that of people's is the
// server's default, 3. A server without priorities passes it over.
const behindPeople = 5

// untilDone is for what is to be done however long it takes.
const untilDone = 0

// attempts repeats an activity with the delays of the specification (8.2), which the
// interceptor replaces by its own; they hold for what Temporal declares itself.
func attempts(most int) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    failure.InitialDelay,
		BackoffCoefficient: failure.Multiplier,
		MaximumInterval:    failure.MaxDelay,
		MaximumAttempts:    int32(most), //nolint:gosec // at most failure.AttemptBudget
	}
}

// forFetch is for reading a changelist with p4.
func forFetch(ctx workflow.Context, budget int) workflow.Context {
	return forStage(ctx, "fetch", activities.QueueFetch, 15*time.Minute, budget)
}

// forRedaction is for work on the processor alone.
func forRedaction(ctx workflow.Context, budget int) workflow.Context {
	return forStage(ctx, "redact", activities.QueueRedact, 5*time.Minute, budget)
}

// forModelCall is for the model, which may think for long.
func forModelCall(ctx workflow.Context, budget int) workflow.Context {
	return forStage(ctx, "critique", activities.QueueLLM, time.Hour, budget)
}

// forAdoption is for reading the report of a shelf's review.
func forAdoption(ctx workflow.Context, budget int) workflow.Context {
	return forStage(ctx, "adopt", activities.QueueNotify, 5*time.Minute, budget)
}

// forMail is for sending to every recipient, one after another.
func forMail(ctx workflow.Context, budget int) workflow.Context {
	return forStage(ctx, "notify", activities.QueueNotify, time.Hour, budget)
}

// forChannel is for telling one channel that is no mailbox.
func forChannel(ctx workflow.Context, c review.Channel, budget int) workflow.Context {
	return forStage(ctx, "tell-"+string(c), activities.ChannelQueue(c), 15*time.Minute, budget)
}

// forStage is one activity of a stage with what is left of the stage's attempt
// budget (criticizer-processing 8.3). The activity ID is fixed, so that it
// survives a reset and reads well in the UI.
func forStage(ctx workflow.Context, id, queue string, timeout time.Duration, budget int) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:          id,
		TaskQueue:           queue,
		StartToCloseTimeout: timeout,
		HeartbeatTimeout:    heartbeat,
		RetryPolicy:         attempts(budget),
	})
}

// forBookkeeping is for the database: short, and retried until it succeeds.
func forBookkeeping(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:          id,
		TaskQueue:           activities.QueueBookkeeping,
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         attempts(untilDone),
	})
}

// book runs an activity of [activities.Bookkeeping]. out is where its result goes, or
// nil.
func book(ctx workflow.Context, id string, activity, in, out any) error {
	return workflow.ExecuteActivity(forBookkeeping(ctx, id), activity, in).Get(ctx, out)
}

// bookAtOnce does the same within the workflow task at hand, as a local activity: the
// server is spared an activity and a workflow task. What fails is scheduled as ever,
// so that an outage, however long, adds no more to the history than one failed try.
func bookAtOnce(ctx workflow.Context, id string, activity, in, out any) error {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 4 * time.Second, // the SDK calls a workflow task of 5 s too long
		RetryPolicy:         attempts(1),
	})
	if err := workflow.ExecuteLocalActivity(local, activity, in).Get(ctx, out); err == nil {
		return nil
	}
	return book(ctx, id, activity, in, out)
}

// forReconciliation is for looking up mails. What one run does not get done the
// next one does.
func forReconciliation(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             "reconcile",
		TaskQueue:              activities.QueueNotify,
		ScheduleToCloseTimeout: time.Hour,
		StartToCloseTimeout:    30 * time.Minute,
		HeartbeatTimeout:       heartbeat,
		RetryPolicy:            attempts(3),
	})
}

// forSearch is for listing changelists. What one run does not get to the next
// one does.
func forSearch(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             id,
		TaskQueue:              activities.QueueFetch,
		ScheduleToCloseTimeout: 30 * time.Minute,
		StartToCloseTimeout:    5 * time.Minute,
		HeartbeatTimeout:       heartbeat,
		RetryPolicy:            attempts(3),
	})
}

// forRetention is for the deletion job, which gives up before the run after the
// next is due: the schedule starts none while one runs.
func forRetention(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             "enforce-retention",
		TaskQueue:              activities.QueueRetention,
		ScheduleToCloseTimeout: 90 * time.Minute,
		StartToCloseTimeout:    30 * time.Minute,
		HeartbeatTimeout:       heartbeat,
		RetryPolicy:            attempts(untilDone),
	})
}

// How a breaker is released: at first a trickle, then freely.
const (
	easing          = 10 * time.Second
	easingPerSecond = 1
)

// ProbeID is the activity ID of a breaker's probe.
const ProbeID = "probe"

// forProbe is for a sign of life of an endpoint: asked for until there is one.
func forProbe(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:          ProbeID,
		TaskQueue:           activities.ProbeQueue(queue),
		StartToCloseTimeout: time.Minute,
		HeartbeatTimeout:    heartbeat,
		RetryPolicy:         attempts(untilDone),
	})
}
