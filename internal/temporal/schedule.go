package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// Schedule schedules a workflow; every worker calls it. A schedule that exists gets the
// interval, unless an operator gave it a calendar; the rest of it does not change, so a schedule
// that an operator has paused stays paused. A schedule has the ID of its action, and skips a run
// while one is running. With runNow, a new schedule runs at once.
func (n Namespace) Schedule(ctx context.Context, every time.Duration, runNow bool, action *client.ScheduleWorkflowAction) error {
	interval := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	_, err := n.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: action.ID, Spec: interval, Action: action, TriggerImmediately: runNow, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = n.ScheduleClient().GetHandle(ctx, action.ID).Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				if spec := in.Description.Schedule.Spec; spec != nil && len(spec.Calendars) > 0 {
					return nil, temporal.ErrSkipScheduleUpdate
				}
				in.Description.Schedule.Spec = &interval
				return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
			},
		})
	}
	return ScheduleError("create", action.ID, err)
}

// Trigger starts a run of a schedule now, and returns the newest run. Temporal drops the start
// while a run is running: started is then false. The error has class NOT_FOUND if there is no
// schedule.
func (n Namespace) Trigger(ctx context.Context, id string) (run client.ScheduleWorkflowExecution, started bool, err error) {
	schedule := n.ScheduleClient().GetHandle(ctx, id)
	before, err := schedule.Describe(ctx)
	if err == nil {
		err = schedule.Trigger(ctx, client.ScheduleTriggerOptions{})
	}
	for err == nil {
		var after *client.ScheduleDescription
		if after, err = schedule.Describe(ctx); err != nil {
			break
		}
		started = after.Info.NumActions > before.Info.NumActions
		dropped := after.Info.NumActionsSkippedOverlap > before.Info.NumActionsSkippedOverlap
		if run = newestRun(after); started && run != newestRun(before) || dropped && run.WorkflowID != "" {
			return run, started, nil
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return run, false, ScheduleError("trigger", id, err)
}

// newestRun returns the newest run of a schedule; zero before the first.
func newestRun(of *client.ScheduleDescription) client.ScheduleWorkflowExecution {
	recent := of.Info.RecentActions
	if len(recent) == 0 || recent[len(recent)-1].StartWorkflowResult == nil {
		return client.ScheduleWorkflowExecution{}
	}
	return *recent[len(recent)-1].StartWorkflowResult
}

// ScheduleError adds the operation to err, and class NOT_FOUND if there is no schedule.
func ScheduleError(op, id string, err error) error {
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return failure.Errorf(failure.NotFound, "there is no schedule %s", id)
	}
	if err != nil {
		return fmt.Errorf("%s schedule %s: %w", op, id, err)
	}
	return nil
}
