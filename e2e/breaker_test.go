package e2e

import (
	"os"
	"strconv"
	"testing"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// A rejected API key dead-letters at least two reviews, which open the circuit
// breaker, and those already in flight. The others wait until the key works.
func TestBreakerOpensForRejectedKey(t *testing.T) {
	t.Parallel()
	const reviews = 20
	in := newInstallation(t, newDepot(t, manyChanges(reviews)...))
	in.inject(llmsim.Fault{Kind: llmsim.InvalidKey})
	in.env = append(in.env, "CRITICIZER_WORKER_LLM_AT_ONCE=2") // reviews in flight
	in.startWorker()
	for cl := range reviews {
		in.mustStart(strconv.Itoa(cl + 1))
	}
	waitFor(t, "the open breaker", func() bool { return in.breakerOpen(activities.QueueLLM) })
	in.model.ClearFaults()
	in.waitForJobs(reviews)
	in.waitForClosedBreaker(activities.QueueLLM)
	n := in.countRows("dead_letters", "true")
	t.Logf("%d dead letters of %d reviews", n, reviews)
	if n < 2 || n > reviews/2 {
		t.Error("want few")
	}
}

// The circuit breaker ignores a single failing review: it uses its five attempts and is
// dead-lettered.
func TestLoneReviewIsDeadLettered(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.inject(llmsim.Fault{Kind: llmsim.Unavailable})
	in.startWorker()
	in.mustStart("1")
	in.waitForJobs(1)
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d model calls, want %d", calls, failure.AttemptBudget)
	}
	if n := in.countRows("dead_letters", "error_class = '"+string(failure.UpstreamUnavailable)+"'"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// A refused connection is no fault of the review: even a single review waits for the
// end of the outage.
func TestLoneReviewWaitsForUnreachableServer(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.write("p4fault", 0o600, `{"fault":"refused"}`)
	in.startWorker()
	in.mustStart("1")
	waitFor(t, "a failed probe", func() bool {
		state, err := in.namespace.BreakerOf(t.Context(), activities.QueueFetch)
		return err == nil && state.Limit.Stopped() && state.Probes > 1
	})
	if err := os.Remove(in.path("p4fault")); err != nil {
		t.Fatal(err)
	}
	in.waitForJobs(1)
	if n := in.countRows("dead_letters", "true"); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
}

// breakerOpen reports whether the circuit breaker of a task queue runs and limits it.
func (in *installation) breakerOpen(queue string) bool {
	state, err := in.namespace.BreakerOf(in.t.Context(), queue)
	return err == nil && state.Running && state.Limit.PerSecond != nil
}

// waitForClosedBreaker waits until a task queue has no limit.
func (in *installation) waitForClosedBreaker(queue string) {
	in.t.Helper()
	waitFor(in.t, "the closed breaker of "+queue, func() bool {
		state, err := in.namespace.BreakerOf(in.t.Context(), queue)
		return err == nil && state.Limit.PerSecond == nil
	})
}
