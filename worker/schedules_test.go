package main

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// Every worker creates the schedule; an operator's change to it stays.
func TestScheduleReconciliationTwice(t *testing.T) {
	t.Parallel()
	n, _ := temporaltest.New(t, contract.Attributes()...)
	schedule := n.ScheduleClient().GetHandle(t.Context(), workflows.ReconciliationSchedule)
	for _, every := range []time.Duration{15 * time.Minute, 5 * time.Minute} {
		testkit.NoError(t, scheduleReconciliation(t.Context(), n, every))
		described, err := schedule.Describe(t.Context())
		testkit.NoError(t, err)
		if got := described.Schedule.Spec.Intervals; len(got) != 1 || got[0].Every != every {
			t.Errorf("intervals are %+v, want %s", got, every)
		}
		if paused := every == 5*time.Minute; described.Schedule.State.Paused != paused {
			t.Errorf("paused: %t, want %t", described.Schedule.State.Paused, paused)
		}
		testkit.NoError(t, schedule.Pause(t.Context(), client.SchedulePauseOptions{Note: "maintenance"}))
	}
	if err := schedule.Delete(t.Context()); err != nil {
		t.Error(err)
	}
}
