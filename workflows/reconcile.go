package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
)

// ReconciliationSchedule is the ID of the schedule that runs
// [ReconcileDeliveries]. It is wire format.
const ReconciliationSchedule = "criticizer-reconciliation"

// ReconcileDeliveries runs one reconciliation of the outbox with the mail
// server's records (review-notification 8.2, 8.3). It is a workflow, so that it
// is scheduled, paused, run at once and watched like any other.
func ReconcileDeliveries(ctx workflow.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	err := workflow.ExecuteActivity(forReconciliation(ctx), notifying.ReconcileDeliveries).Get(ctx, &done)
	return done, err
}
