package temporalns

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/workflows"
)

// ScheduleReconciliation has deliveries reconciled at this interval from now on,
// one run at a time. A schedule that exists keeps all but its interval: one that
// an operator has paused stays so.
func (n Namespace) ScheduleReconciliation(ctx context.Context, every time.Duration) error {
	err := n.keepSchedule(ctx, every, false, &client.ScheduleWorkflowAction{
		ID:            workflows.ReconciliationSchedule,
		Workflow:      workflows.ReconcileDeliveries,
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Reconciliation of the outbox with the mail server's records",
	})
	if err != nil {
		return fmt.Errorf("schedule the reconciliation of deliveries: %w", err)
	}
	return nil
}

func (n Namespace) reconciliation(ctx context.Context) client.ScheduleHandle {
	return n.ScheduleClient().GetHandle(ctx, workflows.ReconciliationSchedule)
}

// Reconcile has the schedule run now and waits for what the run did; if a run is
// under way, for that one. The error has class NOT_FOUND if there is no schedule.
func (n Namespace) Reconcile(ctx context.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	run, err := n.reconciliationRun(ctx)
	if err == nil && !n.running(ctx, run) {
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

// startReconciliation returns when another run than before has begun.
func (n Namespace) startReconciliation(ctx context.Context, before client.ScheduleWorkflowExecution) (client.ScheduleWorkflowExecution, error) {
	if err := n.reconciliation(ctx).Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		return before, fmt.Errorf("run the reconciliation of deliveries: %w", err)
	}
	for {
		run, err := n.reconciliationRun(ctx)
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

func (n Namespace) running(ctx context.Context, run client.ScheduleWorkflowExecution) bool {
	if run.WorkflowID == "" {
		return false
	}
	described, err := n.DescribeWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID)
	return err == nil && described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// reconciliationRun returns the newest run of the schedule; it is zero before
// the first.
func (n Namespace) reconciliationRun(ctx context.Context) (client.ScheduleWorkflowExecution, error) {
	described, err := n.reconciliation(ctx).Describe(ctx)
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return client.ScheduleWorkflowExecution{}, failure.Errorf(failure.NotFound, "there is no schedule %s", workflows.ReconciliationSchedule)
	}
	if err != nil {
		return client.ScheduleWorkflowExecution{}, fmt.Errorf("look at the schedule %s: %w", workflows.ReconciliationSchedule, err)
	}
	recent := described.Info.RecentActions
	if len(recent) == 0 || recent[len(recent)-1].StartWorkflowResult == nil {
		return client.ScheduleWorkflowExecution{}, nil
	}
	return *recent[len(recent)-1].StartWorkflowResult, nil
}
