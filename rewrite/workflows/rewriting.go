// Package workflows holds the workflows of the complaint_rewrite queue: each is one run of
// a worker. A schedule starts them. It skips a start while the last run is running, and
// an operator pauses, triggers and watches it with Temporal's tools (rewrite 5).
package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/store"
)

var a *activities.Activities

// Register registers a workflow under the name of each worker.
func Register(w worker.WorkflowRegistry) {
	for name, work := range map[rewrite.Worker]any{
		rewrite.Submitter: a.SubmitBatches, rewrite.Collector: a.CollectBatches, rewrite.AsyncLane: a.ExecuteJobs,
	} {
		once := func(ctx workflow.Context) (store.Run, error) { return run(ctx, name, work) }
		w.RegisterWorkflowWithOptions(once, workflow.RegisterOptions{Name: string(name)})
	}
}

// run dispatches one run (rewrite 5): a local activity counts the pending items. Without
// any, it has recorded the skip event, and the workflow ends. Otherwise run executes the work
// activity and records the counts even if the work failed or was canceled. An attempt of the
// activity is not an attempt of a job: the activity continues where the attempt before it
// ended.
func run(ctx workflow.Context, w rewrite.Worker, work any) (store.Run, error) {
	var pending bool
	err := workflow.ExecuteLocalActivity(forDispatch(ctx), a.BeginRun, w).Get(ctx, &pending)
	if err != nil || !pending {
		return store.Run{Worker: w, Event: w.Skip()}, err
	}
	worked := workflow.ExecuteActivity(forWork(ctx), work).Get(ctx, nil)
	ending, _ := workflow.NewDisconnectedContext(ctx)
	var done store.Run
	if err := workflow.ExecuteActivity(forRecord(ending), a.FinishRun).Get(ending, &done); err != nil {
		return done, err
	}
	return done, worked
}

// All timeouts and retries are below, and all are bounded: a run that cannot finish must
// not keep the schedule from starting the next one, which takes over its claims.

// heartbeat is how long a crash of the worker stays undetected.
const heartbeat = 15 * time.Second

const (
	shortLimit   = time.Minute      // of one attempt to look for work, or to record the end of a run
	shortRetries = 10 * time.Minute // of all attempts
)

// forWork returns the options of the work activity. The activity limits its own runtime
// and then finishes the calls in flight, which take some minutes.
func forWork(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID: "work", TaskQueue: activities.Queue, ScheduleToCloseTimeout: time.Hour, HeartbeatTimeout: heartbeat, RetryPolicy: retries,
		WaitForCancellation: true, // for the calls in flight, which are billed
	})
}

// forDispatch returns the options of the local activity that looks for work.
func forDispatch(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: shortRetries, StartToCloseTimeout: shortLimit, RetryPolicy: retries,
	})
}

// forRecord returns the options of the activity that records the end of a run.
func forRecord(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID: "finish", TaskQueue: activities.Queue, ScheduleToCloseTimeout: shortRetries, StartToCloseTimeout: shortLimit, RetryPolicy: retries,
	})
}

// retries applies to lost attempts; the interceptor sets the delay of an attempt that reports
// its failure, with jitter. Each worker has one run at a time, so that lost attempts need
// none.
var retries = &temporal.RetryPolicy{
	InitialInterval: failure.InitialDelay, BackoffCoefficient: failure.DelayMultiplier, MaximumInterval: failure.MaxDelay,
}
