package temporal_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
)

// Every worker creates the schedule; an operator's change to it stays.
func TestScheduleTwice(t *testing.T) {
	t.Parallel()
	n, _ := temporaltest.New(t)
	schedule := n.ScheduleClient().GetHandle(t.Context(), "nightly")
	for _, every := range []time.Duration{15 * time.Minute, 5 * time.Minute} {
		testkit.NoError(t, n.Schedule(t.Context(), every, false, &client.ScheduleWorkflowAction{ID: "nightly", Workflow: "none", TaskQueue: "none"}))
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
