package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
)

// acquire runs one attempt. lines counts its log lines.
func acquire(t *testing.T, w *activitiestest.World) (lines int, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: plain, RetryAll: true, Log: slog.New(countingHandler{slog.DiscardHandler, &lines})},
	}})
	b := &activities.Bookkeeping{Slots: w.Open(t)}
	env.RegisterActivity(b)
	_, err = env.ExecuteActivity(b.AcquireSlots, request)
	return lines, err
}

// countingHandler counts records.
type countingHandler struct {
	slog.Handler
	n *int
}

func (h countingHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h countingHandler) Handle(context.Context, slog.Record) error { *h.n++; return nil }
func (h countingHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }

// Waiting is not a failure.
func TestAcquireSlotsWaits(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	w.SetSlots(nil, 1)
	lines, err := acquire(t, w)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() != time.Hour || app.Category() != temporal.ApplicationErrorCategoryBenign || lines != 0 {
		t.Errorf("ended with %v and %d lines of log, want a benign error that is repeated when the review is woken", err, lines)
	}
}

func TestAcquireSlotsWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	w.Fail("AcquireSlots", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
	lines, err := acquire(t, w)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != string(failure.DatabaseUnavailable) || lines == 0 {
		t.Errorf("ended with %v and %d lines of log", err, lines)
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
