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

// answer lets the model answer from now on.
func (in *limitedInstallation) release() { in.once.Do(func() { close(in.released) }) }

// startHot starts the reviews of the changes that are capped, and waits until all
// but two of them wait.
func (in *limitedInstallation) startLimited(n int) {
	in.t.Helper()
	for i := range n {
		in.ids = append(in.ids, in.mustStart(strconv.Itoa(i+1)).WorkflowID)
	}
	waitFor(in.t, "the others wait", func() bool { return in.countRows("admissions", "waits_for is not null") == n-2 })
}

// atOnceInLLM is how many of the capped reviews were in stage llm at the same time,
// at most, by what Temporal recorded.
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

// Of ten changes to one path two are in stage llm at a time; others are not held up;
// who waits is told for what, and adds nothing to its history.
func TestInFlightPerPath(t *testing.T) {
	t.Parallel()
	in := newLimitedInstallation(t, 10)
	in.startWorker()
	in.startLimited(10)
	waiting := ""
	for i := range 10 {
		waiting += in.criticizer("status", strconv.Itoa(i+1))
	}
	if n := strings.Count(waiting, "for a slot of //depot/hot/..., since "); n != 8 {
		t.Errorf("status says of %d reviews that they wait, want 8:\n%s", n, waiting)
	}
	in.mustStart("11")
	waitFor(in.t, "the change elsewhere is reviewed", func() bool { return in.modelCalls.Load() >= 3 })
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
			t.Errorf("the history of %s has %d events of waiting, want one", id, waits)
		}
	}
}

// A review that is terminated gives its slot back; one whose worker is killed keeps
// it, for it goes on.
func TestSlotsOfThoseThatDie(t *testing.T) {
	t.Parallel()
	in := newLimitedInstallation(t, 4)
	worker := in.startWorker()
	in.startLimited(4)
	waitFor(in.t, "the model is asked twice", func() bool { return in.modelCalls.Load() >= 2 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	in.startWorker()
	waitFor(in.t, "the model is asked again", func() bool { return in.modelCalls.Load() >= 4 })
	if n := in.countRows("admissions", "admitted_run is not null"); n != 2 {
		t.Errorf("%d reviews have slots after the death of a worker, want 2", n)
	}
	var holder string
	if err := in.database.Conn(t).QueryRow(t.Context(), `select idempotency_key from criticizer.jobs
		join criticizer.admissions using (changelist_id, review_version) where admitted_run is not null limit 1`).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	if err := in.namespace.TerminateWorkflow(t.Context(), holder, "", "not wanted"); err != nil {
		t.Fatal(err)
	}
	waitFor(in.t, "another has the slot", func() bool {
		return in.countRows("admissions", "admitted_run is not null and not ended") == 2 && in.countRows("admissions", "ended") == 1
	})
	in.release()
	in.waitForJobs(3)
	if most := in.maxConcurrentInLLM(); most != 2 {
		t.Errorf("%d of the reviews were in stage llm at once, want 2", most)
	}
}
