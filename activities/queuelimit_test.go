package activities_test

import (
	"testing"

	"github.com/criticizer/criticizer/activities"
)

// A throttled queue is no open circuit breaker, and only a limit of 0 stops a queue.
func TestLimitsOfABreaker(t *testing.T) {
	t.Parallel()
	order := activities.BreakerOrder{By: "worker 1", Reason: "5 of 7 results failed"}
	for phase, want := range map[activities.Phase]bool{activities.PhaseOpen: true, activities.PhaseHalfOpen: true, activities.PhaseThrottled: false} {
		if got := order.Limit(phase, 1).NotClosed(); got != want {
			t.Errorf("%s: not closed %t, want %t", phase, got, want)
		}
	}
	if (activities.QueueLimit{}).Stopped() || order.Limit(activities.PhaseThrottled, 0.5).Stopped() || !order.Limit(activities.PhaseOpen, 0).Stopped() {
		t.Error("a queue is stopped by another limit than 0, or not by it")
	}
}
