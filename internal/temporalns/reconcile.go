package temporalns

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/workflows"
)

// Reconcile triggers a reconciliation of deliveries, or joins the one that is running, and
// returns its result. The error has class NOT_FOUND if there is no schedule.
func (n Namespace) Reconcile(ctx context.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	run, err := n.newestReconciliation(ctx)
	if err == nil && !n.isRunning(ctx, run) {
		run, err = n.startReconciliation(ctx, run)
	}
	if err != nil {
		return done, err
	}
	if err := n.GetWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID).Get(ctx, &done); err != nil {
		return done, fmt.Errorf("reconcile deliveries: %w", err)
	}
	return done, nil
}

func (n Namespace) reconciliation(ctx context.Context) client.ScheduleHandle {
	return n.ScheduleClient().GetHandle(ctx, workflows.ReconciliationSchedule)
}

// startReconciliation triggers the schedule and returns when a run newer than before has
// begun.
func (n Namespace) startReconciliation(ctx context.Context, before client.ScheduleWorkflowExecution) (client.ScheduleWorkflowExecution, error) {
	err := n.reconciliation(ctx).Trigger(ctx, client.ScheduleTriggerOptions{})
	if err := scheduleError("trigger", workflows.ReconciliationSchedule, err); err != nil {
		return before, err
	}
	for {
		run, err := n.newestReconciliation(ctx)
		if err != nil || run != before {
			return run, err
		}
		select {
		case <-ctx.Done():
			return run, fmt.Errorf("wait for the reconciliation to begin: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (n Namespace) isRunning(ctx context.Context, run client.ScheduleWorkflowExecution) bool {
	described, err := n.DescribeWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID)
	return err == nil && described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// newestReconciliation returns the newest run of the schedule; zero before the first.
func (n Namespace) newestReconciliation(ctx context.Context) (client.ScheduleWorkflowExecution, error) {
	described, err := n.reconciliation(ctx).Describe(ctx)
	if err := scheduleError("describe", workflows.ReconciliationSchedule, err); err != nil {
		return client.ScheduleWorkflowExecution{}, err
	}
	recent := described.Info.RecentActions
	if len(recent) == 0 || recent[len(recent)-1].StartWorkflowResult == nil {
		return client.ScheduleWorkflowExecution{}, nil
	}
	return *recent[len(recent)-1].StartWorkflowResult, nil
}
