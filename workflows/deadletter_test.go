package workflows_test

import (
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// A stage whose last worker crashed is dead-lettered as a timeout, with the time of the
// first failure (processing 8.4).
func TestDeadLetterOfALostAttempt(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBench(t)
	const anything = "mock.Anything" // the SDK's word for any argument
	earlier := temporal.NewApplicationError("model endpoint answered 503", string(failure.UpstreamUnavailable))
	b.OnActivity("Critique", anything, anything).Return(activities.CritiqueResult{},
		temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, earlier, map[string]time.Time{"first_failure_at": first}))
	_, err := b.review(t)
	if classOf(err) != failure.AttemptTimeout {
		t.Fatalf("review ended with %v", err)
	}
	letter, _ := b.world.Letter("default-test-run-id")
	if !letter.FirstFailureAt.Equal(first) || letter.Attempts != failure.AttemptBudget ||
		!strings.Contains(letter.LastStack, "Heartbeat; an earlier attempt: model endpoint answered 503") {
		t.Errorf("letter = %+v", letter)
	}
}
