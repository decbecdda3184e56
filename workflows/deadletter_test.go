package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
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
	earlier := temporal.NewApplicationError("model endpoint answered 503", string(failure.UpstreamUnavailable))
	b.OnActivity("Critique", mock.Anything, mock.Anything).Return(activities.CritiqueResult{},
		temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, earlier, map[string]time.Time{"first_failure_at": first}))
	_, err := b.review(t)
	if classOf(err) != failure.AttemptTimeout {
		t.Fatalf("review ended with %v", err)
	}
	letter := letterIn(t, err)
	if !letter.FirstFailureAt.Equal(first) || letter.Attempts != failure.AttemptBudget ||
		!strings.Contains(letter.LastStack, "Heartbeat; an earlier attempt: model endpoint answered 503") {
		t.Errorf("letter = %+v", letter)
	}
}

// The activities of a stage share its attempts, the adoption of a report among them.
func TestBudgetOfAllActivitiesOfAStage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	b.world.Fail("Get report", down, down, failure.Errorf(failure.ArtifactExpired, "the report has expired"))
	b.world.Fail("Get raw", down)
	b.world.Fail("Review", down, down, down)
	_, err := b.review(t)
	if letter := letterIn(t, err); letter.Attempts != 5 || letter.SanitizedContext["activity"] != "critique" || b.world.Calls("Review") != 2 {
		t.Errorf("%d model calls, dead letter %+v; want the fifth failure of the stage to be the last", b.world.Calls("Review"), letter)
	}
}

// An activity that leaves no report of its attempts has used up the rest of the budget.
func TestBudgetOfALostActivity(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	b.world.Fail("Get report", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"), failure.Errorf(failure.ArtifactExpired, "the report has expired"))
	b.OnActivity("Critique", mock.Anything, mock.Anything).Return(activities.CritiqueResult{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil))
	_, err := b.review(t)
	if letter := letterIn(t, err); letter.Attempts != failure.AttemptBudget || letter.ErrorClass != failure.AttemptTimeout {
		t.Errorf("dead letter %+v, want %d attempts", letter, failure.AttemptBudget)
	}
}

// If attempts that do not count used up those of an activity, it runs again with the rest.
func TestActivityRunsAgainWithTheRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, run := range []struct{ attempts, attempt, stopped int }{{5, 5, 3}, {3, 4, 1}} { // an operator allowed a fourth
		lost := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil, map[string]int{"attempt": run.attempt, "stopped": run.stopped})
		b.OnActivity("Redact", mock.Anything, mock.Anything).Return(activities.RedactResult{}, lost).Times(run.attempts)
	}
	_, err := b.review(t)
	if letter := letterIn(t, err); letter.Attempts != 5 || letter.ErrorClass != failure.AttemptTimeout {
		t.Errorf("dead letter %+v; want a run with 2 failures and one with 3", letter)
	}
	b.AssertActivityNumberOfCalls(t, "Redact", 8)
}

// Attempts that end because the worker stops do not count.
func TestStoppedAttemptsDoNotCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	stopped, down := failure.Errorf(failure.WorkerStopped, "worker is stopping"), failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	c.world.Fail("Get raw", stopped, stopped, down, stopped, stopped, down)
	c.world.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	if letter := letterIn(t, c.review(t)); letter.Attempts != 3 || letter.ErrorClass != failure.AuthDenied || c.world.Calls("Get raw") != 7 {
		t.Errorf("%d attempts to redact, dead letter %+v; want two failures to redact and one of the model", c.world.Calls("Get raw"), letter)
	}
	c.keep(t, "stopped")
}

// letterIn returns the dead letter in the failure of a review.
func letterIn(t *testing.T, err error) (letter failure.DeadLetter) {
	t.Helper()
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || app.Details(&letter) != nil {
		t.Fatalf("review ended with %v, not with a dead letter", err)
	}
	return letter
}
