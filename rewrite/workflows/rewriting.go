// Package workflows holds the workflows of the complaint_rewrite queue: one run
// of one of its workers. A schedule starts them, so that they are paused, run at
// once and watched like any other workflow, and so that a run that goes on
// keeps the next from being started (queue 5 of the contract
// complaint_rewrite_queue_processing_v1).
package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
)

var working *activities.Working

// Register has w serve the workflows, under the names of the workers.
func Register(w worker.WorkflowRegistry) {
	for name, run := range map[rewrite.Worker]func(workflow.Context) (rewrite.Run, error){
		rewrite.Submitter: Submit, rewrite.Collector: Collect, rewrite.AsyncLane: Execute,
	} {
		w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: string(name)})
	}
}

// Submit runs the batch submitter once.
func Submit(ctx workflow.Context) (rewrite.Run, error) {
	return run(ctx, rewrite.Submitter, working.SubmitBatches)
}

// Collect runs the batch collector once.
func Collect(ctx workflow.Context) (rewrite.Run, error) {
	return run(ctx, rewrite.Collector, working.CollectBatches)
}

// Execute runs the async lane once.
func Execute(ctx workflow.Context) (rewrite.Run, error) {
	return run(ctx, rewrite.AsyncLane, working.ExecuteJobs)
}

// run looks for pending work, does it, and records what was done, also if it
// failed or was canceled. Attempts of the activity in between are not attempts
// of jobs: each goes on where the one before it ended.
func run(ctx workflow.Context, w rewrite.Worker, work any) (rewrite.Run, error) {
	var begun bool
	err := workflow.ExecuteActivity(forRecord(ctx, "begin"), working.BeginRun, w).Get(ctx, &begun)
	if err != nil || !begun {
		return rewrite.Run{Worker: w, Event: w.Skip()}, err
	}
	worked := workflow.ExecuteActivity(forWork(ctx), work).Get(ctx, nil)
	ending, _ := workflow.NewDisconnectedContext(ctx)
	var done rewrite.Run
	if err := workflow.ExecuteActivity(forRecord(ending, "finish"), working.FinishRun).Get(ending, &done); err != nil {
		return done, err
	}
	return done, worked
}

// Every timeout and retry is below. All end: a run that cannot go on must not
// keep the schedule from starting the next, which takes over what it has left.

// heartbeat is how long a dead worker can go unnoticed.
const heartbeat = 15 * time.Second

// forWork is for the work itself, which limits its own runtime: what it has
// begun at the end of that still takes a call of some minutes.
func forWork(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             "work",
		TaskQueue:              activities.Queue,
		ScheduleToCloseTimeout: time.Hour,
		HeartbeatTimeout:       heartbeat,
		RetryPolicy:            retries(),
	})
}

// forRecord is for the record of a run in the database.
func forRecord(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             id,
		TaskQueue:              activities.Queue,
		ScheduleToCloseTimeout: 10 * time.Minute,
		StartToCloseTimeout:    time.Minute,
		RetryPolicy:            retries(),
	})
}

func retries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}
