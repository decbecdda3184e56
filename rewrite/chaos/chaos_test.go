// Package chaos kills the workers of the rewrite queue between any two steps and
// interrupts its database and its provider. Then it counts executions at the provider and
// states in the database: every job is completed, and no batch job is executed twice
// (rewrite 7).
//
// The product has no hooks for this: a breakpoint in front of the provider recognizes the
// moment by the request. make rewritechaos runs the tests; CHAOS_RUNS is the number of
// runs per point.
package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
)

// A point is a fault of the queue.
type point struct {
	name string
	at   moment
	// fault is injected at the provider.
	fault llmsim.Fault
	// during runs while the queue is drained, if set.
	during func(*installation)
	// clock is the error of the provider's clock.
	clock time.Duration
}

func points() []point {
	return []point{
		{name: "no fault"},
		{name: "killed between claim and submit", at: moment{"POST", "/v1/files", "", false, 2}},
		{name: "killed between upload and create", at: moment{"POST", "/v1/batches", "batches", false, 2}},
		{name: "killed between create and write", at: moment{"POST", "/v1/batches", "batches", true, 2}},
		{name: "killed while polling", at: moment{"GET", "/v1/batches/", "", true, 2}},
		{name: "killed between collect and write", at: moment{"GET", "/v1/files/", "/content", true, 2}},
		{name: "killed while deleting files", at: moment{"DELETE", "/v1/files/", "", false, 2}},
		{name: "killed before a single call", at: moment{"POST", "/v1/responses", "", false, 2}},
		{name: "killed between a single call and its write", at: moment{"POST", "/v1/responses", "", true, 2}},
		{name: "killed while searching for a lost batch", at: moment{"GET", "/v1/batches", "batches", true, 2},
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 1}},
		{name: "reply to a creation is lost", fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "reply is lost, provider's clock is behind", clock: -40 * time.Minute,
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "reply is lost, provider's clock is ahead", clock: 40 * time.Minute,
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "provider is unavailable", fault: llmsim.Fault{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 3}},
		{name: "provider limits the rate", fault: llmsim.Fault{Kind: llmsim.RateLimit, On: llmsim.Create, Times: 3, RetryAfter: "1"}},
		{name: "provider has no capacity", fault: llmsim.Fault{Kind: llmsim.OutOfRoom, On: llmsim.Batch, Times: 2}},
		{name: "batch expires halfway", fault: llmsim.Fault{Kind: llmsim.Expire, On: llmsim.Batch, Times: 1}},
		{name: "result lines are duplicated", fault: llmsim.Fault{Kind: llmsim.DoubledLines, On: llmsim.Batch}},
		{name: "database is unavailable", during: (*installation).breakDatabase},
	}
}

const (
	// runsVariable sets the number of runs per point. Without it the tests are skipped.
	runsVariable = "CHAOS_RUNS"
	// pointsVariable selects points whose name contains its text.
	pointsVariable = "CHAOS_POINTS"
	// testTimeout bounds draining a few dozen jobs on a busy machine. Most of the time,
	// Temporal waits for heartbeats of dead workers.
	testTimeout = 15 * time.Minute
)

// runs returns the number of runs per point.
func runs(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil || n < 1 {
		t.Skipf("SKIPPED: %s is not set: run the test with make rewritechaos", runsVariable)
	}
	return n
}

func TestRewriteChaos(t *testing.T) {
	for n := range runs(t) {
		for _, p := range points() {
			if !strings.Contains(p.name, os.Getenv(pointsVariable)) {
				continue
			}
			t.Run(fmt.Sprintf("%s, run %d", p.name, n+1), func(t *testing.T) {
				t.Parallel()
				p.test(t)
			})
		}
	}
}

func (p point) test(t *testing.T) {
	t.Helper()
	in := newInstallation(t, 20, llmsim.Config{BatchPolls: 1, Clock: func() time.Time { return time.Now().Add(p.clock) }})
	if p.fault.Kind != "" {
		in.provider.Inject(p.fault)
	}
	batch, single := in.enqueue(50, rewrite.Batch), in.enqueue(12, rewrite.Async)
	in.breakpoint.arm(p.at)
	if p.during != nil {
		p.during(in)
	}
	in.drain(testTimeout)
	if n := in.breakpoint.count(); n != p.at.times {
		t.Errorf("the breakpoint was reached %d times, want %d", n, p.at.times)
	}
	in.checkCounts(batch, single)
}

// A long queue is drained while workers are killed periodically and the provider loses
// replies, expires batches and duplicates lines.
func TestLongDrain(t *testing.T) {
	jobs := runs(t) * 10_000
	in := newInstallation(t, 500, llmsim.Config{BatchPolls: 1})
	batch := in.enqueue(jobs, rewrite.Batch)
	in.provider.Inject(
		llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 3},
		llmsim.Fault{Kind: llmsim.Expire, On: llmsim.Batch, Times: 2},
		llmsim.Fault{Kind: llmsim.DoubledLines, On: llmsim.Batch, Times: 2},
		llmsim.Fault{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 2},
		llmsim.Fault{Kind: llmsim.RateLimit, On: llmsim.Create, Times: 2},
		llmsim.Fault{Kind: llmsim.Internal, Times: 20},
	)
	stop := in.killPeriodically(20 * time.Second)
	in.drain(4 * testTimeout)
	stop()
	in.checkCounts(batch, nil)
	t.Logf("drained %d jobs", jobs)
}

// killPeriodically kills all workers at an interval until stop is called.
func (in *installation) killPeriodically(every time.Duration) (stop func()) {
	ticker := time.NewTicker(every)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				in.workers.kill()
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

// checkCounts checks the jobs in the database and their executions at the provider. A kill
// can hit single calls at any point: each attempt that was lost within its call may be one
// call more.
func (in *installation) checkCounts(batch, single []string) {
	in.t.Helper()
	if n := in.number(`select count(*) from complaint_rewrite.jobs where status = 'completed'`); n != len(batch)+len(single) {
		in.t.Errorf("%d jobs of %d are completed:\n%s", n, len(batch)+len(single), in.describeJobs())
	}
	executed := in.provider.Rewrites()
	for _, id := range batch {
		if executed[id] != 1 {
			in.t.Errorf("job %s was executed %d times in batches, want once", id, executed[id])
		}
		delete(executed, id)
	}
	calls := 0
	for _, n := range executed {
		calls += n
	}
	lost := in.number(`
		select count(*) from complaint_rewrite.transitions t join complaint_rewrite.jobs j using (job_id)
		where j.execution_mode = 'async' and t.error in ('WORKER_STOPPED', 'stale_claim_requeued')`)
	if len(executed) != len(single) || calls > len(single)+lost {
		in.t.Errorf("%d single calls for %d messages, want one for each of %d, and at most %d more", calls, len(executed), len(single), lost)
	}
	in.checkTransitions()
	for _, id := range append(batch[:1:1], single...) {
		if text := in.result(id); !strings.HasPrefix(text, "You write to ann@corp.example about ") {
			in.t.Errorf("the result of job %s is %q", id, text)
		}
	}
}

// checkTransitions checks in the database that each job's transitions are contiguous. It
// refuses those that are not allowed (rewrite 3).
func (in *installation) checkTransitions() {
	in.t.Helper()
	broken := in.number(`
		select count(*) from (
			select from_status, lag(to_status) over (partition by job_id order by id) as before
			from complaint_rewrite.transitions) s
		where from_status is distinct from before`)
	if broken > 0 {
		in.t.Errorf("%d transitions do not continue the previous one", broken)
	}
}

// breakDatabase rejects connections for a second and terminates those of the workers, three
// times.
func (in *installation) breakDatabase() {
	in.t.Helper()
	conn, name := in.database.Conn(in.t), ""
	if err := in.scan(&name, `select current_database()`); err != nil {
		in.t.Fatal(err)
	}
	allow := func(yes bool) {
		_, _ = conn.Exec(in.t.Context(), `update pg_database set datallowconn = $1 where datname = $2`, yes, name)
	}
	go func() {
		for range 3 {
			time.Sleep(2 * time.Second)
			allow(false)
			_, _ = conn.Exec(in.t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and datname = $2`, workersName, name)
			time.Sleep(time.Second)
			allow(true)
		}
	}()
}
