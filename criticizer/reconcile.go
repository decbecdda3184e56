package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/workflows"
)

// reconcile triggers a reconciliation of deliveries, or joins the one that is running, and
// returns its result. The error has class NOT_FOUND if there is no schedule.
func (r runs) reconcile(ctx context.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	run, err := r.newestReconciliation(ctx)
	if err == nil && !r.isRunning(ctx, run) {
		run, err = r.startReconciliation(ctx, run)
	}
	if err != nil {
		return done, err
	}
	if err := r.GetWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID).Get(ctx, &done); err != nil {
		return done, fmt.Errorf("reconcile deliveries: %w", err)
	}
	return done, nil
}

func (r runs) reconciliation(ctx context.Context) client.ScheduleHandle {
	return r.ScheduleClient().GetHandle(ctx, workflows.ReconciliationSchedule)
}

// startReconciliation triggers the schedule and returns when a run newer than before has
// begun.
func (r runs) startReconciliation(ctx context.Context, before client.ScheduleWorkflowExecution) (client.ScheduleWorkflowExecution, error) {
	started, err := r.Trigger(ctx, workflows.ReconciliationSchedule)
	if err != nil {
		return before, err
	}
	for {
		run, err := r.newestReconciliation(ctx)
		if err != nil || run != before || !started { // dropped: one began in between
			return run, err
		}
		select {
		case <-ctx.Done():
			return run, fmt.Errorf("wait for the reconciliation to begin: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r runs) isRunning(ctx context.Context, run client.ScheduleWorkflowExecution) bool {
	described, err := r.DescribeWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID)
	return err == nil && described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// newestReconciliation returns the newest run of the schedule; zero before the first.
func (r runs) newestReconciliation(ctx context.Context) (client.ScheduleWorkflowExecution, error) {
	described, err := r.reconciliation(ctx).Describe(ctx)
	if err := temporal.ScheduleError("describe", workflows.ReconciliationSchedule, err); err != nil {
		return client.ScheduleWorkflowExecution{}, err
	}
	recent := described.Info.RecentActions
	if len(recent) == 0 || recent[len(recent)-1].StartWorkflowResult == nil {
		return client.ScheduleWorkflowExecution{}, nil
	}
	return *recent[len(recent)-1].StartWorkflowResult, nil
}
