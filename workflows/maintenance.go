package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
)

// The IDs of schedules are wire format: [ReconciliationSchedule] runs [ReconcileDeliveries],
// and [RetentionSchedule] runs [EnforceRetention].
const (
	ReconciliationSchedule = "criticizer-reconciliation"
	RetentionSchedule      = "criticizer-retention"
)

// ReconcileDeliveries compares the outbox with the mail server's records once. As a
// workflow it can be scheduled, paused, triggered and watched.
func ReconcileDeliveries(ctx workflow.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	err := reconcilePolicy.execute(ctx, "reconcile", &activities.Spent{}, &done, notifier.ReconcileDeliveries)
	return done, err
}

// EnforceRetention deletes expired data once. If no worker serves its queue or the
// deletion fails, the run fails after 90 minutes.
func EnforceRetention(ctx workflow.Context) (activities.RetentionResult, error) {
	var result activities.RetentionResult
	err := retentionPolicy.execute(ctx, "enforce-retention", &activities.Spent{}, &result, retention.EnforceRetention)
	if err != nil {
		workflow.GetLogger(ctx).Error("retention not enforced", "error", err)
	}
	return result, err
}
