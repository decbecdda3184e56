package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A review that waits for a slot uses no attempt, and calls the model once.
func TestReviewWaitsForItsSlots(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.world.SetSlots([]string{"//depot/..."}, 3)
	result, err := b.review(t)
	if err != nil || result.Job.Outcome != review.OutcomeFindings {
		t.Fatalf("review ended as %+v, %v", result.Job, err)
	}
	if n := b.world.Calls("AcquireSlots"); n != 4 || b.world.Calls("Review") != 1 || b.db.Letters(t) != 0 {
		t.Errorf("%d tries, %d model calls, %d dead letters", n, b.world.Calls("Review"), b.db.Letters(t))
	}
}

// A report that is adopted from the shelf needs no model call, so no slot.
func TestAdoptedReportNeedsNoSlots(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	b.world.SetSlots([]string{"//depot/..."}, 1)
	if _, err := b.review(t); err != nil || b.world.Calls("AcquireSlots") != 0 || len(b.world.Mails()) == 0 {
		t.Errorf("ended with %v after %d tries and %d mails", err, b.world.Calls("AcquireSlots"), len(b.world.Mails()))
	}
}

// Waiting adds nothing to the history.
func TestWaitingOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.world.SetSlots([]string{"//depot/..."}, 0)
	noError(t, c.review(t))
	c.keep(t, "slots_acquired")
	long := newCluster(t)
	long.world.SetSlots([]string{"//depot/..."}, 2)
	run := long.start(t, request)
	long.wake(t, 3)
	noError(t, run.Get(t.Context(), nil))
	long.keep(t, "slots_waited")
	if n := long.world.Calls("AcquireSlots"); n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	for name, waited := range map[string]cluster{"at once": c, "after 3 tries": long} {
		want := []enumspb.EventType{enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED}
		if events := waited.eventsOfSlots(t); !slices.Equal(events, want) {
			t.Errorf("slots acquired %s: events %v, want %v", name, events, want)
		}
	}
}

// wake wakes the review's current run until the world has seen n tries to acquire slots. A
// try that did not succeed is repeated at no other time.
func (c cluster) wake(t *testing.T, n int) {
	t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); c.world.Calls("AcquireSlots") < n; {
		select {
		case <-t.Context().Done():
			return
		case <-tick.C:
			if err := c.waker(t.Context(), request.Key, ""); err != nil && t.Context().Err() == nil {
				t.Errorf("wake: %v", err)
			}
		}
	}
}

// eventsOfSlots returns the events of the review's current run from the one that schedules
// AcquireSlots to the one that completes it.
func (c cluster) eventsOfSlots(t *testing.T) (types []enumspb.EventType) {
	t.Helper()
	var scheduled int64
	events := c.GetWorkflowHistory(t.Context(), request.Key, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		noError(t, err)
		if event.GetActivityTaskScheduledEventAttributes().GetActivityId() == activities.SlotsActivity {
			scheduled = event.GetEventId()
		}
		if scheduled > 0 {
			types = append(types, event.GetEventType())
		}
		if completed := event.GetActivityTaskCompletedEventAttributes(); completed != nil && completed.GetScheduledEventId() == scheduled {
			return types
		}
	}
	return types
}

func TestCancellationOfAWaitingReview(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.world.SetSlots([]string{"//depot/..."}, 1)
	run := c.start(t, request)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for c.world.Calls("AcquireSlots") == 0 {
		if time.Sleep(20 * time.Millisecond); ctx.Err() != nil {
			t.Fatal("the review did not try to acquire slots")
		}
	}
	noError(t, c.CancelWorkflow(ctx, request.Key, ""))
	if err := run.Get(ctx, nil); !temporal.IsCanceledError(err) || jobOf(t, c.db, request.Key).State != review.JobCanceled || c.world.Calls("Review") != 0 {
		t.Errorf("ended with %v, job %s", err, jobOf(t, c.db, request.Key).State)
	}
	c.keep(t, "slots_canceled")
}

// A replay of stage llm acquires its slots again: the dead run released them
// (processing 8.5).
func TestReplayWaitsForItsSlots(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.world.SetSlots([]string{"//depot/..."}, 0)
	c.world.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	if err := c.review(t); classOf(err) != failure.AuthDenied {
		t.Fatalf("review ended with %v", err)
	}
	c.world.SetSlots([]string{"//depot/..."}, 1)
	go c.wake(t, 3)
	if _, err := c.reset(t); err != nil {
		t.Fatal(err)
	}
	c.keep(t, "slots_replayed")
	if n := c.world.Calls("AcquireSlots"); n != 3 || c.world.Calls("Fetch") != 1 || c.world.Calls("Review") != 2 {
		t.Errorf("%d tries, want one of the dead run and two of its replay; %d model calls", n, c.world.Calls("Review"))
	}
}
