package e2e

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A review stays within the costs that docs/measured.md lists, plus some headroom. It runs
// before the parallel tests: a slow review has more heartbeats and checks.
func TestCostOfAReview(t *testing.T) {
	const changes = 10
	in := newInstallation(t, newDepot(t, manyChanges(changes)...))
	worker := in.startWorker()
	first := in.mustStart("--wait", "1")
	before := in.settledWork()
	for n := 2; n <= changes; n++ {
		in.mustStart(strconv.Itoa(n))
	}
	in.waitForJobs(changes)
	after := in.settledWork()
	described, err := in.namespace.DescribeWorkflow(t.Context(), first.WorkflowID, "")
	if err != nil {
		t.Fatal(err)
	}
	info := described.RawResponse.GetWorkflowExecutionInfo()
	_ = interrupt(worker)
	usage := worker.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := worker.ProcessState.UserTime() + worker.ProcessState.SystemTime()
	commits, rows := (after.commits-before.commits)/(changes-1), (after.rows-before.rows)/(changes-1)
	t.Logf("per review: history %d events, %d bytes; Postgres %d transactions, %d rows, %d bytes; worker CPU %s (%d reviews, start included), peak memory %d MB",
		info.GetHistoryLength(), info.GetHistorySizeBytes(), commits, rows, (after.bytes-before.bytes)/(changes-1), cpu/changes, changes, usage.Maxrss/1024)
	if info.GetHistoryLength() > 50 || info.GetHistorySizeBytes() > 8_500 {
		t.Errorf("the history has %d events and %d bytes, want at most 50 and 8,500", info.GetHistoryLength(), info.GetHistorySizeBytes())
	}
	if commits > 60 || rows > 30 {
		t.Errorf("a review takes %d transactions and %d changed rows, want at most 60 and 30", commits, rows)
	}
}

// databaseWork is what Postgres did in a database since its creation.
type databaseWork struct {
	commits int
	rows    int // inserted, updated or deleted
	bytes   int // size of the database
}

// settledWork returns the statistics once two readings, a second apart, have the same
// rows. An idle backend reports its own up to ten seconds late, and at once when it ends.
func (in *installation) settledWork() (w databaseWork) {
	in.t.Helper()
	in.exec(`select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and state = 'idle' and pid <> pg_backend_pid()`)
	var last databaseWork
	settled := poll(testTimeout, 1500*time.Millisecond, func() bool {
		last, w = w, databaseWork{}
		in.queryRow(`select xact_commit, tup_inserted + tup_updated + tup_deleted, pg_database_size(datname)
			from pg_stat_database where datname = current_database()`, &w.commits, &w.rows, &w.bytes)
		return w.rows == last.rows
	})
	if !settled {
		in.t.Fatal("the statistics of Postgres do not settle")
	}
	return w
}
