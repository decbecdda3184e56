package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// A limitedInstallation has changes 1 to n under //depot/hot, where two reviews may be in
// flight, and one change elsewhere. The model does not answer before release.
type limitedInstallation struct {
	*installation
	ids        []string // of the workflows of the changes under //depot/hot
	modelCalls atomic.Int64
	released   chan struct{} // closed when the model may answer
	once       sync.Once
}

func newLimitedInstallation(t *testing.T, n int) *limitedInstallation {
	t.Helper()
	changes := make([]map[string]string, n+1)
	for i := range n {
		changes[i] = map[string]string{"hot/a.go": faulty + fmt.Sprintf("// %d\n", i)}
	}
	changes[n] = map[string]string{"cold/a.go": faulty}
	in := &limitedInstallation{installation: newInstallation(t, newDepot(t, changes...)), released: make(chan struct{})}
	in.env = append(in.env, "CRITICIZER_WORKER_MAX_IN_FLIGHT_PER_PATH=//depot/hot/... 2")
	answer := func() {
		in.modelCalls.Add(1)
		<-in.released
	}
	in.beforeAnswer.Store(&answer)
	t.Cleanup(in.release)
	return in
}

func (in *limitedInstallation) release() { in.once.Do(func() { close(in.released) }) }

// startLimited starts the reviews under //depot/hot and waits until all but two wait for
// a slot.
func (in *limitedInstallation) startLimited(n int) {
	in.t.Helper()
	for i := range n {
		in.ids = append(in.ids, in.mustStart(strconv.Itoa(i+1)).WorkflowID)
	}
	waitFor(in.t, "the waiting reviews", func() bool { return in.countRows("slots", "state = 'awaited'") == n-2 })
}

// maxConcurrentInLLM returns the maximum number of limited reviews in stage llm at the
// same time, computed from their histories.
func (in *limitedInstallation) maxConcurrentInLLM() (most int) {
	in.t.Helper()
	type change struct {
		at    time.Time
		delta int
	}
	var changes []change
	for _, id := range in.ids {
		critique, inside := int64(-1), false
		for _, event := range in.history(id, "") {
			switch scheduled := event.GetActivityTaskScheduledEventAttributes(); {
			case scheduled.GetActivityId() == "redact":
				changes, inside = append(changes, change{event.GetEventTime().AsTime(), 1}), true
			case scheduled.GetActivityId() == "critique":
				critique = event.GetEventId()
			case inside && (event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId() == critique ||
				event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED):
				changes, inside = append(changes, change{event.GetEventTime().AsTime(), -1}), false
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	now := 0
	for _, c := range changes {
		now += c.delta
		most = max(most, now)
	}
	return most
}

// Two of ten changes under one path are in stage llm at a time. A change elsewhere is not
// delayed. Status shows the slot that a review waits for, and waiting adds no events to
// its history.
func TestInFlightPerPath(t *testing.T) {
	t.Parallel()
	in := newLimitedInstallation(t, 10)
	in.startWorker()
	in.startLimited(10)
	waiting := 0
	for i := range 10 {
		var reviews []struct {
			Waits any `json:"waits"`
		}
		if in.criticizerJSON(&reviews, "status", strconv.Itoa(i+1)); reviews[0].Waits != nil {
			waiting++
		}
	}
	if waiting != 8 {
		t.Errorf("status shows %d waiting reviews, want 8", waiting)
	}
	in.mustStart("11")
	waitFor(in.t, "the model call about the change elsewhere", func() bool { return in.modelCalls.Load() >= 3 })
	in.release()
	in.waitForJobs(11)
	if n := in.countRows("jobs", "state = 'succeeded'"); n != 11 {
		t.Errorf("%d of 11 reviews have succeeded", n)
	}
	if most := in.maxConcurrentInLLM(); most != 2 {
		t.Errorf("%d of the reviews were in stage llm at once, want 2", most)
	}
	for _, id := range in.ids {
		waits := 0
		for _, event := range in.history(id, "") {
			if event.GetActivityTaskScheduledEventAttributes().GetActivityId() == "acquire-slots" || event.GetTimerStartedEventAttributes() != nil {
				waits++
			}
		}
		if waits != 1 {
			t.Errorf("the history of %s has %d waiting events, want one", id, waits)
		}
	}
}

// A terminated review releases its slot. A review whose worker is killed keeps its slot,
// because it continues on another worker.
func TestSlotsAfterCrashAndTermination(t *testing.T) {
	t.Parallel()
	in := newLimitedInstallation(t, 4)
	worker := in.startWorker()
	in.startLimited(4)
	waitFor(in.t, "two model calls", func() bool { return in.modelCalls.Load() >= 2 })
	kill(worker)
	in.startWorker()
	waitFor(in.t, "more model calls", func() bool { return in.modelCalls.Load() >= 4 })
	if n := in.countRows("slots", "state = 'held'"); n != 2 {
		t.Errorf("%d reviews have slots after the death of a worker, want 2", n)
	}
	var holder string
	in.queryRow(`select idempotency_key from criticizer.jobs
		join criticizer.slots s using (changelist_id, review_version) where s.state = 'held' limit 1`, &holder)
	if err := in.namespace.TerminateWorkflow(t.Context(), holder, "", "not wanted"); err != nil {
		t.Fatal(err)
	}
	waitFor(in.t, "the next holder of the slot", func() bool {
		return in.countRows("jobs", "state = 'canceled'") == 1 && in.countRows("slots", "state = 'held'") == 2
	})
	in.release()
	in.waitForJobs(4)
	if most := in.maxConcurrentInLLM(); most != 2 {
		t.Errorf("%d of the reviews were in stage llm at once, want 2", most)
	}
}
