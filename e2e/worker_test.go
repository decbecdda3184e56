package e2e

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// If a worker dies during a long activity, Temporal notices it by the missing
// heartbeat, long before the activity's own timeout of an hour (processing 8.2). The
// lost attempt is the first failure of the stage (processing 8.4).
func TestHeartbeatDetectsWorkerDeath(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1}, llmsim.Fault{Kind: llmsim.Unavailable})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	kill(worker)
	died := time.Now()
	in.startWorker()
	waitFor(t, "the second attempt", func() bool { return in.model.Stats().Calls == 2 })
	noticed := time.Since(died)
	t.Logf("second attempt after %s", noticed)
	if noticed > 5*time.Minute {
		t.Errorf("second attempt after %s, want the heartbeat timeout of 15 s and a retry, not the activity's timeout", noticed)
	}
	in.waitForJobs(1)
	var first, last time.Time
	in.queryRow("select first_failure_at, last_failure_at from criticizer.dead_letters", &first, &last)
	if first.Before(died) || first.After(died.Add(noticed+time.Second)) || !last.After(first) {
		t.Errorf("first failure %s after the death, last %s; want the first when it was noticed", first.Sub(died), last.Sub(died))
	}
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d model calls, want %d: the lost attempt counts", calls, failure.AttemptBudget)
	}
}

// If a worker is stopped during a model call that outlasts its stop grace, it ends the
// attempt, and the next worker repeats it at once without a dead letter.
func TestDeployDuringModelCall(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.env = append(in.env, "CRITICIZER_WORKER_STOP_GRACE=1s")
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	stopped := time.Now()
	if err := interrupt(worker); err != nil || time.Since(stopped) > time.Minute {
		t.Errorf("worker ended with %v after %s", err, time.Since(stopped))
	}
	in.startWorker()
	in.waitForJobs(1)
	for _, event := range in.history("review-p4-1-v1", "") {
		if lost := event.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); lost != nil {
			t.Errorf("an attempt ended by timeout: %v", lost)
		}
	}
	if n := in.countRows("dead_letters", "true"); n != 0 || in.model.Stats().Calls != 2 {
		t.Errorf("%d dead letters, %d model calls", n, in.model.Stats().Calls)
	}
}

// A worker whose attempts at once depend on memory and processors reviews, also on a busy
// machine.
func TestWorkerTunedByResources(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.env = append(in.env, "CRITICIZER_WORKER_TUNER=resource")
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded {
		t.Errorf("the review is %+v", a)
	}
}
