package temporalns_test

import (
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/workflows"
)

// Every worker creates the schedule; an operator's change to it stays.
func TestScheduleReconciliationTwice(t *testing.T) {
	t.Parallel()
	n, _ := temporalnstest.New(t)
	if _, err := n.Reconcile(t.Context()); failure.ClassOf(err) != failure.NotFound {
		t.Errorf("without a schedule: %v, want NOT_FOUND", err)
	}
	schedule := n.ScheduleClient().GetHandle(t.Context(), workflows.ReconciliationSchedule)
	for _, every := range []time.Duration{15 * time.Minute, 5 * time.Minute} {
		testkit.NoError(t, n.ScheduleReconciliation(t.Context(), every))
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

// Each worker of the rewrite queue has a schedule of its name, which runs once at a time
// and can be triggered (rewrite 5).
func TestScheduleRewrites(t *testing.T) {
	t.Parallel()
	n, _ := temporalnstest.New(t)
	if err := n.TriggerRewrite(t.Context(), rewrite.Submitter); failure.ClassOf(err) != failure.NotFound {
		t.Errorf("without a schedule: %v, want NOT_FOUND", err)
	}
	every := map[rewrite.Worker]time.Duration{rewrite.Submitter: 15 * time.Minute, rewrite.Collector: 30 * time.Minute, rewrite.AsyncLane: time.Hour}
	testkit.NoError(t, n.ScheduleRewrites(t.Context(), every))
	for worker, interval := range every {
		if err := n.TriggerRewrite(t.Context(), worker); err != nil {
			t.Error(err)
		}
		schedule := n.ScheduleClient().GetHandle(t.Context(), string(worker))
		described, err := schedule.Describe(t.Context())
		testkit.NoError(t, err)
		if got := described.Schedule.Spec.Intervals; len(got) != 1 || got[0].Every != interval {
			t.Errorf("%s: intervals are %+v, want %s", worker, got, interval)
		}
		if got := described.Schedule.Policy.Overlap; got != enumspb.SCHEDULE_OVERLAP_POLICY_SKIP {
			t.Errorf("%s: overlapping runs are %s, want to be skipped", worker, got)
		}
		if err := schedule.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
