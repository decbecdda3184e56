package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
)

// RetentionSchedule is the ID of the schedule that runs [EnforceRetention] every
// [RetentionInterval]. It is wire format.
const (
	RetentionSchedule = "criticizer-retention"
	RetentionInterval = time.Hour
)

// EnforceRetention deletes expired data once. If no worker serves its queue or the
// deletion fails, the run fails before the next but one is due.
func EnforceRetention(ctx workflow.Context) (activities.RetentionResult, error) {
	var result activities.RetentionResult
	err := retentionPolicy.run(ctx, "enforce-retention", &activities.Spent{}, &result, retaining.EnforceRetention)
	if err != nil {
		workflow.GetLogger(ctx).Error("retention not enforced", "error", err)
	}
	return result, err
}
