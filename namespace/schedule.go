package namespace

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// keepSchedule has a workflow run at this interval from now on, one run at a
// time. The schedule has the workflow's ID. One that exists keeps all but its
// interval: one that an operator has paused stays so.
func (n Namespace) keepSchedule(ctx context.Context, every time.Duration, action *client.ScheduleWorkflowAction) error {
	return n.keep(ctx, client.ScheduleOptions{Spec: interval(every), Action: action, ID: action.ID})
}

// keepScheduleFromNow is keepSchedule with a first run when the schedule is made.
func (n Namespace) keepScheduleFromNow(ctx context.Context, every time.Duration, action *client.ScheduleWorkflowAction) error {
	return n.keep(ctx, client.ScheduleOptions{Spec: interval(every), Action: action, ID: action.ID, TriggerImmediately: true})
}

func interval(every time.Duration) client.ScheduleSpec {
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
}

func (n Namespace) keep(ctx context.Context, schedule client.ScheduleOptions) error {
	schedule.Overlap = enumspb.SCHEDULE_OVERLAP_POLICY_SKIP
	_, err := n.ScheduleClient().Create(ctx, schedule)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return n.ScheduleClient().GetHandle(ctx, schedule.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Spec = &schedule.Spec
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	})
}
