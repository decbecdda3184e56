package namespace

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/workflows"
)

// ScheduleCatchUp has the search for changelists of a Perforce server that no
// trigger told of run now, and at this interval from now on. Where an operator
// has paused the schedule, it stays so.
func (n Namespace) ScheduleCatchUp(ctx context.Context, serverID string, every time.Duration) error {
	id := workflows.CatchUpSchedule + "-" + serverID
	err := n.keepSchedule(ctx, every, &client.ScheduleWorkflowAction{
		ID:            id,
		Workflow:      workflows.CatchUp,
		Args:          []any{serverID},
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Search for changelists that no trigger told of",
	})
	if err != nil {
		return fmt.Errorf("schedule the search for changelists: %w", err)
	}
	schedule := n.ScheduleClient().GetHandle(ctx, id)
	described, err := schedule.Describe(ctx)
	if err == nil && !described.Schedule.State.Paused {
		err = schedule.Trigger(ctx, client.ScheduleTriggerOptions{})
	}
	if err != nil {
		return fmt.Errorf("run the search for changelists: %w", err)
	}
	return nil
}
