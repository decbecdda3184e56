package activities

import (
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestIntervalsAreThoseOfThePolicy(t *testing.T) {
	t.Parallel()
	policy := &temporal.RetryPolicy{InitialInterval: time.Minute, BackoffCoefficient: 3, MaximumInterval: time.Hour, MaximumAttempts: 2}
	want := failure.Intervals{Initial: time.Minute, Multiplier: 3, Max: time.Hour}
	if got := intervalsOf(activity.Info{RetryPolicy: policy}); got != want {
		t.Errorf("intervals are %+v, want %+v", got, want)
	}
	if got := intervalsOf(activity.Info{}); got != failure.StandardIntervals {
		t.Errorf("without a policy the intervals are %+v, want the standard ones", got)
	}
}
