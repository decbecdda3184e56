package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// An outage that is longer than the five attempts of a review can wait
// dead-letters nothing, for the brake saves the attempts; without it, everything.
// A longer outage differs in nothing: a queue that stands still burns nothing.
func TestOutageOfTheModel(t *testing.T) {
	t.Parallel()
	const reviews = 20
	tests := map[string]struct {
		byHandOnly bool
		want       int // dead letters
	}{
		"with brake":    {false, 0},
		"without brake": {true, reviews},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newDepot(t, manyChanges(reviews)...))
			r.env = append(r.env, fmt.Sprintf("CRITICIZER_BRAKE_BY_HAND_ONLY=%t", tt.byHandOnly))
			r.outage(reviews, llmsim.Unavailable, 25*time.Second)
			if n := r.rows("dead_letters", "true"); n != tt.want {
				t.Errorf("%d dead letters of %d reviews, want %d", n, reviews, tt.want)
			}
		})
	}
}

// A key that is refused dead-letters at once whom it meets: at least two, for
// one may be wrong about everyone, and those that asked at the same time.
func TestKeyIsRefusedForEveryone(t *testing.T) {
	t.Parallel()
	const reviews = 20
	r := newRig(t, newDepot(t, manyChanges(reviews)...))
	r.outage(reviews, llmsim.InvalidKey, 5*time.Second)
	if n := r.rows("dead_letters", "true"); n < 2 || n > reviews/2 {
		t.Errorf("%d dead letters of %d reviews, want few", n, reviews)
	}
}

// outage starts n reviews while the model fails, lets it fail for so long, and
// waits for their end. Then the queue must be free again.
func (r *rig) outage(n int, fault llmsim.FaultKind, length time.Duration) {
	r.t.Helper()
	if err := r.model.Inject(llmsim.Fault{Kind: fault}); err != nil {
		r.t.Fatal(err)
	}
	r.startWorker()
	for cl := range n {
		r.mustStart(strconv.Itoa(cl + 1))
	}
	time.Sleep(length)
	r.t.Logf("%d calls of the model in the outage", r.model.Stats().Calls)
	r.model.ClearFaults()
	r.waitForJobs(n, 2*time.Minute)
	waitFor(r.t, "the release of the queue", func() bool {
		state, err := r.namespace.BrakeOf(r.t.Context(), activities.QueueLLM)
		return err == nil && !state.Running && state.Limit.PerSecond == nil
	})
}

// A review that fails alone gets its five attempts and its dead letter: the
// brake is for everyone's failures.
func TestLoneReviewIsDeadLettered(t *testing.T) {
	t.Parallel()
	r := newRig(t, newDepot(t, map[string]string{"a.go": clean}))
	if err := r.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable}); err != nil {
		t.Fatal(err)
	}
	r.startWorker()
	r.mustStart("1")
	r.waitForJobs(1, time.Minute)
	if calls := r.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d calls of the model, want %d", calls, failure.AttemptBudget)
	}
	if n := r.rows("dead_letters", "error_class = 'UPSTREAM_UNAVAILABLE'"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
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
func (r *rig) waitForJobs(n int, patience time.Duration) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); r.rows("jobs", "finished_at is not null") < n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d of %d jobs have ended after %s", r.rows("jobs", "finished_at is not null"), n, patience)
		}
	}
}

// rows counts the rows of a table.
func (r *rig) rows(table, where string) (n int) {
	r.t.Helper()
	conn := r.database.Conn(r.t)
	defer func() { _ = conn.Close(r.t.Context()) }()
	if err := conn.QueryRow(r.t.Context(), "select count(*) from criticizer."+table+" where "+where).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}
