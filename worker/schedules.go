package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// scheduleCatchUp schedules the search for changelists of a Perforce server that have no
// review. A new schedule runs at once.
func scheduleCatchUp(ctx context.Context, n temporal.Namespace, serverID string, every time.Duration) error {
	return n.Schedule(ctx, every, true, &client.ScheduleWorkflowAction{
		ID:            workflows.CatchUpSchedule + "-" + serverID,
		Workflow:      workflows.CatchUp,
		Args:          []any{serverID},
		TaskQueue:     contract.QueueBookkeeping,
		StaticSummary: "Search for changelists without a review",
	})
}

// scheduleReconciliation schedules the reconciliation of deliveries.
func scheduleReconciliation(ctx context.Context, n temporal.Namespace, every time.Duration) error {
	return n.Schedule(ctx, every, false, &client.ScheduleWorkflowAction{
		ID:            workflows.ReconciliationSchedule,
		Workflow:      workflows.ReconcileDeliveries,
		TaskQueue:     contract.QueueBookkeeping,
		StaticSummary: "Reconciliation of the outbox with the mail server's records",
	})
}

// scheduleRetention schedules the deletion of expired data, unless its schedule exists: an
// interval that an operator has changed stays.
func scheduleRetention(ctx context.Context, n temporal.Namespace) error {
	action := &client.ScheduleWorkflowAction{
		ID:            workflows.RetentionSchedule,
		Workflow:      workflows.EnforceRetention,
		TaskQueue:     contract.QueueBookkeeping,
		StaticSummary: "Deletion of expired data",
	}
	return n.CreateSchedule(ctx, workflows.RetentionInterval, false, action)
}
