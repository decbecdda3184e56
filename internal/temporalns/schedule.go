package temporalns

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// createSchedule has a workflow run at this interval, one run at a time. The
// schedule has the workflow's ID. The error is ErrScheduleAlreadyRunning if there is
// one, which stays as it is.
func (n Namespace) createSchedule(ctx context.Context, every time.Duration, fromNow bool, action *client.ScheduleWorkflowAction) error {
	_, err := n.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: action.ID, Spec: interval(every), Action: action, TriggerImmediately: fromNow,
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	return err
}

func interval(every time.Duration) client.ScheduleSpec {
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
}

// keepSchedule is createSchedule, and gives a schedule that exists the interval. All
// else it keeps: one that an operator has paused stays so.
func (n Namespace) keepSchedule(ctx context.Context, every time.Duration, fromNow bool, action *client.ScheduleWorkflowAction) error {
	err := n.createSchedule(ctx, every, fromNow, action)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return n.ScheduleClient().GetHandle(ctx, action.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Spec = new(interval(every))
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	})
}
