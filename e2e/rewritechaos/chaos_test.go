// Package rewritechaos kills the workers of the rewrite queue at every point
// between its steps, breaks its database and its provider, and then counts at
// the provider's side and in the database: no job is lost, none is executed
// twice, none is stuck (queue 7, 8).
//
// The product has no hooks for this: a trap before the provider recognises the
// moment by the request. Sections cited as "queue N" are those of the contract
// complaint_rewrite_queue_processing_v1.
package rewritechaos

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

// A point is one way to break the queue.
type point struct {
	name string
	at   moment
	// fault is what the provider does besides.
	fault llmsim.Fault
	// breaks runs while the queue is drained, if set.
	during func(*installation)
	// clock is by how much the provider's clock is wrong.
	clock time.Duration
	// again is how many executions more than jobs the provider may count: those
	// of single calls that were killed before their result was written.
	extraCalls int
}

func points() []point {
	return []point{
		{name: "nothing breaks"},
		{name: "killed between claim and submit", at: moment{"POST", "/v1/files", "", false, 2}},
		{name: "killed between upload and create", at: moment{"POST", "/v1/batches", "batches", false, 2}},
		{name: "killed between create and write", at: moment{"POST", "/v1/batches", "batches", true, 2}},
		{name: "killed while it polls", at: moment{"GET", "/v1/batches/", "", true, 2}},
		{name: "killed between collect and write", at: moment{"GET", "/v1/files/", "/content", true, 2}},
		{name: "killed while it deletes files", at: moment{"DELETE", "/v1/files/", "", false, 2}},
		{name: "killed before a single call", at: moment{"POST", "/v1/responses", "", false, 2}},
		{name: "killed between a single call and its write", at: moment{"POST", "/v1/responses", "", true, 2}, extraCalls: 2 * concurrency},
		{name: "killed while it looks for a lost batch", at: moment{"GET", "/v1/batches", "batches", true, 2},
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 1}},
		{name: "answer to a creation is lost", fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "answer is lost, provider's clock is behind", clock: -40 * time.Minute,
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "answer is lost, provider's clock is ahead", clock: 40 * time.Minute,
			fault: llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 2}},
		{name: "provider is out", fault: llmsim.Fault{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 3}},
		{name: "provider limits the rate", fault: llmsim.Fault{Kind: llmsim.RateLimit, On: llmsim.Create, Times: 3, RetryAfter: "1"}},
		{name: "provider has no room", fault: llmsim.Fault{Kind: llmsim.OutOfRoom, On: llmsim.Batch, Times: 2}},
		{name: "batch expires halfway", fault: llmsim.Fault{Kind: llmsim.Expire, On: llmsim.Batch, Times: 1}},
		{name: "lines are there twice", fault: llmsim.Fault{Kind: llmsim.DoubledLines, On: llmsim.Batch}},
		{name: "database is out", during: (*installation).breakDatabase},
	}
}

// concurrency is how many single calls a worker makes at a time.
const concurrency = 4

const (
	// runsVariable sets the number of runs per point; without it nothing is run.
	runsVariable = "CHAOS_RUNS"
	// pointsVariable chooses the points whose name holds its text.
	pointsVariable = "CHAOS_POINTS"
	// patience is what a queue of some dozen jobs has on a busy machine; most of
	// it Temporal takes to notice dead workers.
	testTimeout = 15 * time.Minute
)

// runs is how often each point is tried.
func runs(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil || n < 1 {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; make rewritechaos sets it", runsVariable)
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
		if err := in.provider.Inject(p.fault); err != nil {
			t.Fatal(err)
		}
	}
	batch, single := in.enqueue(50, rewrite.Batch), in.enqueue(12, rewrite.Async)
	in.breakpoint.arm(p.at)
	if p.during != nil {
		p.during(in)
	}
	in.drain(testTimeout)
	if n := in.breakpoint.count(); n != p.at.times {
		t.Errorf("struck %d times, want %d", n, p.at.times)
	}
	in.checkCounts(batch, single, p.extraCalls)
}

// A long queue is drained while workers die at every turn, and the provider
// loses answers, ends batches halfway and spoils lines.
func TestLongDrain(t *testing.T) {
	jobs := runs(t) * 10_000
	in := newInstallation(t, 500, llmsim.Config{BatchPolls: 1})
	batch := in.enqueue(jobs, rewrite.Batch)
	for _, f := range []llmsim.Fault{
		{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 3},
		{Kind: llmsim.Expire, On: llmsim.Batch, Times: 2},
		{Kind: llmsim.DoubledLines, On: llmsim.Batch, Times: 2},
		{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 2},
		{Kind: llmsim.RateLimit, On: llmsim.Create, Times: 2},
		{Kind: llmsim.Internal, Times: 20},
	} {
		if err := in.provider.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	stop := in.killPeriodically(20 * time.Second)
	in.drain(4 * testTimeout)
	stop()
	in.checkCounts(batch, nil, 0)
	t.Logf("drained %d jobs", jobs)
}

// killNowAndThen kills all workers again and again until it is stopped.
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

// count tells what became of the jobs, by the database and by the provider.
func (in *installation) checkCounts(batch, single []string, extraCalls int) {
	in.t.Helper()
	if n := in.number(`select count(*) from criticizer.rewrite_jobs where status = 'completed'`); n != len(batch)+len(single) {
		in.t.Errorf("%d jobs of %d are completed:\n%s", n, len(batch)+len(single), in.describeJobs())
	}
	executed := in.provider.Rewrites()
	for _, id := range batch {
		if executed[id] != 1 {
			in.t.Errorf("job %s was executed %d times in batches, want once", id, executed[id])
		}
		delete(executed, id)
	}
	calls := 0 // by the fence of each message
	for _, n := range executed {
		calls += n
	}
	if len(executed) != len(single) || calls > len(single)+extraCalls {
		in.t.Errorf("%d single calls for %d messages, want one for each of %d, and at most %d more", calls, len(executed), len(single), extraCalls)
	}
	in.checkTransitions()
	for _, id := range append(batch[:1:1], single...) {
		if text := in.result(id); !strings.HasPrefix(text, "You write to ann@corp.example about ") {
			in.t.Errorf("the result of job %s is %q", id, text)
		}
	}
}

// checkTransitions: each job's own trail is whole, and only of legal changes
// (queue 3), by the database's own view.
func (in *installation) checkTransitions() {
	in.t.Helper()
	broken := in.number(`
		select count(*) from (
			select from_status, lag(to_status) over (partition by job_id order by id) as before
			from criticizer.rewrite_transitions) s
		where from_status is distinct from before`)
	if broken > 0 {
		in.t.Errorf("%d transitions do not follow on the one before", broken)
	}
	var changes []string
	err := in.scan(&changes, `select array_agg(distinct from_status || ' ' || to_status) from criticizer.rewrite_transitions where from_status is not null`)
	if err != nil {
		in.t.Fatal(err)
	}
	for _, change := range changes {
		from, to, _ := strings.Cut(change, " ")
		if !rewrite.Status(from).MayBecome(rewrite.Status(to)) {
			in.t.Errorf("a job went from %s to %s", from, to)
		}
	}
}

// breakDatabase ends all connections of the workers, three times, and lets none
// in for a while.
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
