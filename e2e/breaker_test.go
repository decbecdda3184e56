package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// A key that is refused dead-letters at once whom it meets: at least two, for
// one may be wrong about everyone, and those that asked at the same time.
func TestKeyIsRefusedForEveryone(t *testing.T) {
	t.Parallel()
	const reviews = 20
	in := newInstallation(t, newDepot(t, manyChanges(reviews)...))
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.InvalidKey}); err != nil {
		t.Fatal(err)
	}
	in.startWorker()
	for cl := range reviews {
		in.mustStart(strconv.Itoa(cl + 1))
	}
	time.Sleep(5 * time.Second)
	in.model.ClearFaults()
	in.waitForJobs(reviews)
	in.waitForClosedBreaker(activities.QueueLLM)
	if n := in.countRows("dead_letters", "true"); n < 2 || n > reviews/2 {
		t.Errorf("%d dead letters of %d reviews, want few", n, reviews)
	}
}

// A review that fails alone gets its five attempts and its dead letter: the
// breaker is for everyone's failures.
func TestLoneReviewIsDeadLettered(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable}); err != nil {
		t.Fatal(err)
	}
	in.startWorker()
	in.mustStart("1")
	in.waitForJobs(1)
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d calls of the model, want %d", calls, failure.AttemptBudget)
	}
	if n := in.countRows("dead_letters", "error_class = 'UPSTREAM_UNAVAILABLE'"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// Nobody who answers is no review's fault: also the only one in flight waits for
// the end of the outage.
func TestLoneReviewWaitsForWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.write("p4fault", 0o600, `{"fault":"refused"}`)
	in.startWorker()
	in.mustStart("1")
	time.Sleep(20 * time.Second) // more than five attempts take
	if err := os.Remove(in.path("p4fault")); err != nil {
		t.Fatal(err)
	}
	in.waitForJobs(1)
	if n := in.countRows("dead_letters", "true"); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
}

func manyChanges(n int) []map[string]string {
	changes := make([]map[string]string, n)
	for i := range changes {
		changes[i] = map[string]string{"a.go": faulty + fmt.Sprintf("// %d\n", i)}
	}
	return changes
}

// waitForJobs waits until n jobs have ended, well or in a dead letter.
func (in *installation) waitForJobs(n int) {
	in.t.Helper()
	waitFor(in.t, fmt.Sprintf("the end of %d jobs", n), func() bool { return in.countRows("jobs", "finished_at is not null") >= n })
}

// rows counts the rows of a table.
func (in *installation) countRows(table, where string) (n int) {
	in.t.Helper()
	conn := in.database.Conn(in.t)
	defer func() { _ = conn.Close(in.t.Context()) }()
	if err := conn.QueryRow(in.t.Context(), "select count(*) from criticizer."+table+" where "+where).Scan(&n); err != nil {
		in.t.Fatal(err)
	}
	return n
}
