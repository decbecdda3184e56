package activities_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
)

// acquire runs one attempt and returns what it logs.
func acquire(t *testing.T, w *activitiestest.World) (logged string, err error) {
	t.Helper()
	var out bytes.Buffer
	env := newEnv(&activities.Interceptor{Scrub: plain, RetryAll: true, Log: slog.New(slog.NewTextHandler(&out, nil))})
	b := &activities.Bookkeeping{Slots: w.Open(t)}
	env.RegisterActivity(b)
	_, err = env.ExecuteActivity(b.AcquireSlots, request)
	return out.String(), err
}

// Waiting is not a failure.
func TestAcquireSlotsWaits(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	w.SetSlots(nil, 1)
	logged, err := acquire(t, w)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() != time.Hour || app.Category() != temporal.ApplicationErrorCategoryBenign || logged != "" {
		t.Errorf("ended with %v and logged %q, want a benign error that is repeated when the review is woken", err, logged)
	}
}

func TestAcquireSlotsWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	w.Fail("AcquireSlots", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
	logged, err := acquire(t, w)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != string(failure.DatabaseUnavailable) || logged == "" {
		t.Errorf("ended with %v and logged %q", err, logged)
	}
}

func TestFetchNotesSlots(t *testing.T) {
	t.Parallel()
	for _, patterns := range [][]string{nil, {"//depot/..."}} {
		w := activitiestest.New()
		w.SetSlots(patterns, 0)
		stage := newFetching(t, w)
		db := stage.Recipients.(activitiestest.Database)
		stage.InFlight, stage.Slots = w, db
		result, err := stage.Fetch(t.Context(), activities.StageParams{Request: request})
		var noted int
		db.Scan(t, `select count(*) from criticizer.admissions where not by_bot`, nil, &noted)
		if needs := patterns != nil; err != nil || result.NeedsSlots != needs || noted != len(patterns) || needs && !slices.Equal(result.SlotLimits, []int{1}) {
			t.Errorf("with %q: needs slots %t of limits %v, noted %d times, %v", patterns, result.NeedsSlots, result.SlotLimits, noted, err)
		}
	}
}
