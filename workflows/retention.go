package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
)

var retaining *activities.Retaining

// RetentionSchedule is the ID of the schedule that runs [EnforceRetention] every
// [RetentionInterval]. It is wire format.
const (
	RetentionSchedule = "criticizer-retention"
	RetentionInterval = time.Hour
)

// EnforceRetention runs the deletion job once (security 9.4.5). A run that no
// worker serves, or that does not get through, fails before the next but one is
// due, where people look for failures.
func EnforceRetention(ctx workflow.Context) (activities.RetentionResult, error) {
	var result activities.RetentionResult
	err := workflow.ExecuteActivity(forRetention(ctx), retaining.EnforceRetention).Get(ctx, &result)
	if err != nil {
		workflow.GetLogger(ctx).Error("retention was not enforced", "error", err)
	}
	return result, err
}
