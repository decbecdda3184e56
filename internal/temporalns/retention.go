package temporalns

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/workflows"
)

// ScheduleRetention has the deletion job run from now on, unless it does already
// (security 9.4.5). A schedule that an operator has changed or paused stays so.
func (n Namespace) ScheduleRetention(ctx context.Context) error {
	err := n.createSchedule(ctx, workflows.RetentionInterval, false, &client.ScheduleWorkflowAction{
		ID:            workflows.RetentionSchedule,
		Workflow:      workflows.EnforceRetention,
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Deletion of what is past its time",
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("schedule the deletion of expired artifacts: %w", err)
	}
	return nil
}
