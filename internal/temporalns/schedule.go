package temporalns

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	rewriteactivities "github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/workflows"
)

// Every worker creates the schedules. A schedule that exists gets the interval; the rest of
// it does not change, so a schedule that an operator has paused stays paused. A schedule
// has the ID of its workflow and skips a run while one is running.

// ScheduleCatchUp schedules the search for changelists of a Perforce server that have no
// review. A new schedule runs at once.
func (n Namespace) ScheduleCatchUp(ctx context.Context, serverID string, every time.Duration) error {
	return n.schedule(ctx, every, true, &client.ScheduleWorkflowAction{
		ID:            workflows.CatchUpSchedule + "-" + serverID,
		Workflow:      workflows.CatchUp,
		Args:          []any{serverID},
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Search for changelists without a review",
	})
}

// ScheduleReconciliation schedules the reconciliation of deliveries.
func (n Namespace) ScheduleReconciliation(ctx context.Context, every time.Duration) error {
	return n.schedule(ctx, every, false, &client.ScheduleWorkflowAction{
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
	err := n.createSchedule(ctx, workflows.RetentionInterval, false, action)
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create schedule %s: %w", action.ID, err)
	}
	return nil
}

// ScheduleRewrites schedules the workers of the rewrite queue, each at its interval
// (rewrite 5).
func (n Namespace) ScheduleRewrites(ctx context.Context, every map[rewrite.Worker]time.Duration) error {
	for worker, interval := range every {
		err := n.schedule(ctx, interval, false, &client.ScheduleWorkflowAction{
			ID:            string(worker),
			Workflow:      string(worker),
			TaskQueue:     rewriteactivities.Queue,
			StaticSummary: "One run of a worker of the rewrite queue",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TriggerRewrite triggers a run of a rewrite worker. The error has class NOT_FOUND if
// there is no schedule.
func (n Namespace) TriggerRewrite(ctx context.Context, worker rewrite.Worker) error {
	err := n.ScheduleClient().GetHandle(ctx, string(worker)).Trigger(ctx, client.ScheduleTriggerOptions{})
	return scheduleError("trigger", string(worker), err)
}

func (n Namespace) createSchedule(ctx context.Context, every time.Duration, runNow bool, action *client.ScheduleWorkflowAction) error {
	_, err := n.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: action.ID, Spec: interval(every), Action: action, TriggerImmediately: runNow,
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	return err
}

func interval(every time.Duration) client.ScheduleSpec {
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
}

// schedule creates a schedule, or sets the interval of the one that exists.
func (n Namespace) schedule(ctx context.Context, every time.Duration, runNow bool, action *client.ScheduleWorkflowAction) error {
	err := n.createSchedule(ctx, every, runNow, action)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = n.ScheduleClient().GetHandle(ctx, action.ID).Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				in.Description.Schedule.Spec = new(interval(every))
				return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
			},
		})
	}
	if err != nil {
		return fmt.Errorf("create schedule %s: %w", action.ID, err)
	}
	return nil
}

// scheduleError adds the operation to err, and class NOT_FOUND if there is no schedule.
func scheduleError(op, id string, err error) error {
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return failure.Errorf(failure.NotFound, "there is no schedule %s", id)
	}
	if err != nil {
		return fmt.Errorf("%s schedule %s: %w", op, id, err)
	}
	return nil
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
