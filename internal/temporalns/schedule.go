package temporalns

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

// ScheduleCatchUp schedules the search for changelists of a Perforce server that have no
// review. A new schedule runs at once.
func (n Namespace) ScheduleCatchUp(ctx context.Context, serverID string, every time.Duration) error {
	return n.Schedule(ctx, every, true, &client.ScheduleWorkflowAction{
		ID:            workflows.CatchUpSchedule + "-" + serverID,
		Workflow:      workflows.CatchUp,
		Args:          []any{serverID},
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Search for changelists without a review",
	})
}

// ScheduleReconciliation schedules the reconciliation of deliveries.
func (n Namespace) ScheduleReconciliation(ctx context.Context, every time.Duration) error {
	return n.Schedule(ctx, every, false, &client.ScheduleWorkflowAction{
		ID:            workflows.ReconciliationSchedule,
		Workflow:      workflows.ReconcileDeliveries,
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Reconciliation of the outbox with the mail server's records",
	})
}

// ScheduleRetention schedules the deletion of expired data, unless its schedule exists: an
// interval that an operator has changed stays.
func (n Namespace) ScheduleRetention(ctx context.Context) error {
	action := &client.ScheduleWorkflowAction{
		ID:            workflows.RetentionSchedule,
		Workflow:      workflows.EnforceRetention,
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Deletion of expired data",
	}
	return n.CreateSchedule(ctx, workflows.RetentionInterval, false, action)
}

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
	if err := n.Trigger(ctx, workflows.ReconciliationSchedule); err != nil {
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
	if err := temporal.ScheduleError("describe", workflows.ReconciliationSchedule, err); err != nil {
		return client.ScheduleWorkflowExecution{}, err
	}
	recent := described.Info.RecentActions
	if len(recent) == 0 || recent[len(recent)-1].StartWorkflowResult == nil {
		return client.ScheduleWorkflowExecution{}, nil
	}
	return *recent[len(recent)-1].StartWorkflowResult, nil
}
