package temporalns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
)

// ScheduleRewrites has each worker of the rewrite queue run at its interval from
// now on, one run at a time (queue 5). The schedules have the workers' names.
func (n Namespace) ScheduleRewrites(ctx context.Context, every map[rewrite.Worker]time.Duration) error {
	for worker, interval := range every {
		err := n.keepSchedule(ctx, interval, false, &client.ScheduleWorkflowAction{
			ID:            string(worker),
			Workflow:      string(worker),
			TaskQueue:     activities.Queue,
			StaticSummary: "One run of a worker of the rewrite queue",
		})
		if err != nil {
			return fmt.Errorf("schedule %s: %w", worker, err)
		}
	}
	return nil
}

// TriggerRewrite has a worker's schedule run now, unless a run is under way. The
// error has class NOT_FOUND if there is no schedule.
func (n Namespace) TriggerRewrite(ctx context.Context, worker rewrite.Worker) error {
	err := n.ScheduleClient().GetHandle(ctx, string(worker)).Trigger(ctx, client.ScheduleTriggerOptions{})
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return failure.Errorf(failure.NotFound, "there is no schedule %s", worker)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", worker, err)
	}
	return nil
}
