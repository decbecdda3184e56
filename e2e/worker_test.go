package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// Criticizer-processing 8.2: a worker that dies in the middle of a long activity
// is noticed within seconds, by its heartbeat, and not when the hour is over that
// the activity may take. 8.4: the first failure of the stage is that death.
func TestDeathOfAWorkerIsNoticedByItsHeartbeat(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	for _, fault := range []llmsim.Fault{{Kind: llmsim.Hang, Times: 1}, {Kind: llmsim.Unavailable}} {
		if err := in.model.Inject(fault); err != nil {
			t.Fatal(err)
		}
	}
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	died := time.Now()
	in.startWorker()
	waitFor(t, "the second attempt", func() bool { return in.model.Stats().Calls == 2 })
	noticed := time.Since(died)
	t.Logf("second attempt after %s", noticed)
	if noticed > 25*time.Second {
		t.Errorf("second attempt after %s, want the heartbeat timeout of 15 s and a retry", noticed)
	}
	in.waitForJobs(1)
	first, last := in.failureTimes()
	if first.Before(died) || first.After(died.Add(noticed+time.Second)) || !last.After(first) {
		t.Errorf("first failure %s after the death, last %s; want the first when it was noticed", first.Sub(died), last.Sub(died))
	}
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d calls of the model, want %d: the lost attempt counts", calls, failure.AttemptBudget)
	}
}

// A worker that is told to stop in the middle of a model call that takes longer
// than its grace ends the attempt; the next worker repeats it at once, and
// nothing is dead-lettered.
func TestDeployInTheMiddleOfAModelCall(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.env = append(in.env, "CRITICIZER_WORKER_STOP_GRACE=1s")
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1}); err != nil {
		t.Fatal(err)
	}
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	stopped := time.Now()
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil || time.Since(stopped) > 5*time.Second {
		t.Errorf("worker ended with %v after %s", err, time.Since(stopped))
	}
	in.startWorker()
	in.waitForJobs(1)
	for _, event := range in.history("review-p4-1-v1", "") {
		if lost := event.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); lost != nil {
			t.Errorf("an attempt was missed only when its time was over: %v", lost)
		}
	}
	if n := in.countRows("dead_letters", "true"); n != 0 || in.model.Stats().Calls != 2 {
		t.Errorf("%d dead letters, %d model calls", n, in.model.Stats().Calls)
	}
}

// failures returns when the stage of the only dead letter failed first and last.
func (in *installation) failureTimes() (first, last time.Time) {
	in.t.Helper()
	err := in.database.Conn(in.t).QueryRow(in.t.Context(),
		"select first_failure_at, last_failure_at from criticizer.dead_letters").Scan(&first, &last)
	if err != nil {
		in.t.Fatal(err)
	}
	return first, last
}
