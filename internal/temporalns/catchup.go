package temporalns

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/workflows"
)

// ScheduleCatchUp has the search for changelists of a Perforce server that no
// trigger told of run now and at this interval from now on. Where an operator has
// paused the schedule, it stays so.
func (n Namespace) ScheduleCatchUp(ctx context.Context, serverID string, every time.Duration) error {
	err := n.keepSchedule(ctx, every, true, &client.ScheduleWorkflowAction{
		ID:            workflows.CatchUpSchedule + "-" + serverID,
		Workflow:      workflows.CatchUp,
		Args:          []any{serverID},
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Search for changelists that no trigger told of",
	})
	if err != nil {
		return fmt.Errorf("schedule the search for changelists: %w", err)
	}
	return nil
}
