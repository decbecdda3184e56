package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
)

// ReconciliationSchedule is the ID of the schedule that runs [ReconcileDeliveries]. It is
// wire format.
const ReconciliationSchedule = "criticizer-reconciliation"

// ReconcileDeliveries compares the outbox with the mail server's records once. As a
// workflow it can be scheduled, paused, triggered and watched.
func ReconcileDeliveries(ctx workflow.Context) (activities.Reconciled, error) {
	var done activities.Reconciled
	err := reconcilePolicy.run(ctx, "reconcile", &activities.Spent{}, &done, notifying.ReconcileDeliveries)
	return done, err
}
