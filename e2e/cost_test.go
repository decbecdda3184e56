package e2e

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

// What a review costs is in docs/scaling.md; the limits here are those figures
// and some room, so that neither grows unnoticed.
func TestCostOfAReview(t *testing.T) {
	t.Parallel()
	const changes = 10
	in := newInstallation(t, newDepot(t, manyChanges(changes)...))
	worker := in.startWorker()
	warm := in.mustStart("--wait", "1")
	before := in.databaseWork()
	for n := 2; n <= changes; n++ {
		in.mustStart(strconv.Itoa(n))
	}
	in.waitForJobs(changes)
	time.Sleep(2 * time.Second) // the server gathers its statistics for a while
	after := in.databaseWork()
	described, err := in.namespace.DescribeWorkflowExecution(t.Context(), warm.WorkflowID, "")
	if err != nil {
		t.Fatal(err)
	}
	info := described.GetWorkflowExecutionInfo()
	stop(t, worker)
	usage := worker.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := worker.ProcessState.UserTime() + worker.ProcessState.SystemTime()
	perReview := after.minus(before).over(changes - 1)
	t.Logf("per review: history %d events, %d bytes; Postgres %+v; worker CPU %s (%d reviews, start included), most memory %d MB",
		info.GetHistoryLength(), info.GetHistorySizeBytes(), perReview, cpu/changes, changes, usage.Maxrss/1024)
	if info.GetHistoryLength() > 50 || info.GetHistorySizeBytes() > 8_500 {
		t.Errorf("the history has %d events and %d bytes, want at most 50 and 8,500", info.GetHistoryLength(), info.GetHistorySizeBytes())
	}
	if perReview.Commits > 60 || perReview.Rows > 30 {
		t.Errorf("Postgres has %d transactions and %d rows per review to do, want at most 60 and 30", perReview.Commits, perReview.Rows)
	}
}

// databaseWork is what Postgres did in a database since it was made.
type databaseWork struct {
	Commits int
	Rows    int // inserted, updated or deleted
	Bytes   int // of the database
}

func (w databaseWork) minus(o databaseWork) databaseWork {
	return databaseWork{w.Commits - o.Commits, w.Rows - o.Rows, w.Bytes - o.Bytes}
}

func (w databaseWork) over(n int) databaseWork {
	return databaseWork{w.Commits / n, w.Rows / n, w.Bytes / n}
}

func (in *installation) databaseWork() (w databaseWork) {
	in.t.Helper()
	conn := in.database.Conn(in.t)
	defer func() { _ = conn.Close(in.t.Context()) }()
	err := conn.QueryRow(in.t.Context(), `select xact_commit, tup_inserted + tup_updated + tup_deleted, pg_database_size(datname)
		from pg_stat_database where datname = current_database()`).Scan(&w.Commits, &w.Rows, &w.Bytes)
	if err != nil {
		in.t.Fatal(err)
	}
	return w
}
