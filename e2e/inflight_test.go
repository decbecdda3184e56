package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// A capped rig has changes 1 to n under //depot/hot, of which two reviews may be in
// flight, and one more elsewhere. The model answers when it is told to.
type cappedRig struct {
	*rig
	ids   []string // of the workflows of the changes under //depot/hot
	asked atomic.Int64
	let   chan struct{} // closed when the model may answer
	once  sync.Once
}

func newCappedRig(t *testing.T, n int) *cappedRig {
	t.Helper()
	changes := make([]map[string]string, n+1)
	for i := range n {
		changes[i] = map[string]string{"hot/a.go": faulty + fmt.Sprintf("// %d\n", i)}
	}
	changes[n] = map[string]string{"cold/a.go": faulty}
	r := &cappedRig{rig: newRig(t, newDepot(t, changes...)), let: make(chan struct{})}
	r.env = append(r.env, "CRITICIZER_WORKER_MAX_IN_FLIGHT_PER_PATH=//depot/hot/... 2")
	answer := func() {
		r.asked.Add(1)
		<-r.let
	}
	r.atModel.Store(&answer)
	t.Cleanup(r.answer)
	return r
}

// answer lets the model answer from now on.
func (r *cappedRig) answer() { r.once.Do(func() { close(r.let) }) }

// startHot starts the reviews of the changes that are capped, and waits until all
// but two of them wait.
func (r *cappedRig) startHot(n int) {
	r.t.Helper()
	for i := range n {
		r.ids = append(r.ids, r.mustStart(strconv.Itoa(i+1)).WorkflowID)
	}
	waitFor(r.t, "the others wait", func() bool { return r.rows("admissions", "waits_for is not null") == n-2 })
}

// atOnceInLLM is how many of the capped reviews were in stage llm at the same time,
// at most, by what Temporal recorded.
func (r *cappedRig) atOnceInLLM() (most int) {
	r.t.Helper()
	type change struct {
		at    time.Time
		delta int
	}
	var changes []change
	for _, id := range r.ids {
		critique, inside := int64(-1), false
		for _, event := range r.history(id, "") {
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

// Of ten changes to one path two are in stage llm at a time; others are not held up;
// who waits is told for what, and adds nothing to its history.
func TestInFlightPerPath(t *testing.T) {
	t.Parallel()
	r := newCappedRig(t, 10)
	r.startWorker()
	r.startHot(10)
	waiting := ""
	for i := range 10 {
		waiting += r.criticizer("status", strconv.Itoa(i+1))
	}
	if n := strings.Count(waiting, "for a slot of //depot/hot/..., since "); n != 8 {
		t.Errorf("status says of %d reviews that they wait, want 8:\n%s", n, waiting)
	}
	r.mustStart("11")
	waitFor(r.t, "the change elsewhere is reviewed", func() bool { return r.asked.Load() >= 3 })
	r.answer()
	r.waitForJobs(11)
	if n := r.rows("jobs", "state = 'succeeded'"); n != 11 {
		t.Errorf("%d of 11 reviews have succeeded", n)
	}
	if most := r.atOnceInLLM(); most != 2 {
		t.Errorf("%d of the reviews were in stage llm at once, want 2", most)
	}
	for _, id := range r.ids {
		waits := 0
		for _, event := range r.history(id, "") {
			if event.GetActivityTaskScheduledEventAttributes().GetActivityId() == "acquire-slots" || event.GetTimerStartedEventAttributes() != nil {
				waits++
			}
		}
		if waits != 1 {
			t.Errorf("the history of %s has %d events of waiting, want one", id, waits)
		}
	}
}

// A review that is terminated gives its slot back; one whose worker is killed keeps
// it, for it goes on.
func TestSlotsOfThoseThatDie(t *testing.T) {
	t.Parallel()
	r := newCappedRig(t, 4)
	worker := r.startWorker()
	r.startHot(4)
	waitFor(r.t, "the model is asked twice", func() bool { return r.asked.Load() >= 2 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	r.startWorker()
	waitFor(r.t, "the model is asked again", func() bool { return r.asked.Load() >= 4 })
	if n := r.rows("admissions", "admitted_run is not null"); n != 2 {
		t.Errorf("%d reviews have slots after the death of a worker, want 2", n)
	}
	var holder string
	if err := r.database.Conn(t).QueryRow(t.Context(), `select idempotency_key from criticizer.jobs
		join criticizer.admissions using (changelist_id, review_version) where admitted_run is not null limit 1`).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	if err := r.namespace.TerminateWorkflow(t.Context(), holder, "", "not wanted"); err != nil {
		t.Fatal(err)
	}
	waitFor(r.t, "another has the slot", func() bool {
		return r.rows("admissions", "admitted_run is not null and not ended") == 2 && r.rows("admissions", "ended") == 1
	})
	r.answer()
	r.waitForJobs(3)
	if most := r.atOnceInLLM(); most != 2 {
		t.Errorf("%d of the reviews were in stage llm at once, want 2", most)
	}
}
