package e2e

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// scaleVariable names the environment variable with the minutes of TestScale; make scale
// sets it.
const scaleVariable = "SCALE_MINUTES"

const (
	modelLatency  = 30 * time.Second // of each call
	maxInProgress = 3000             // reviews
	highestRate   = 30               // starts per second, reached after a third of the time
	scaleWorkers  = 2
	historyShards = 512
)

// Reviews are started at a rising rate until this machine cannot keep up and
// maxInProgress are in progress. At the end each has been mailed exactly once. Temporal's
// server and the reviews use one Postgres, which waits for the disk (fsync).
func TestScale(t *testing.T) {
	length := minutesOf(t, "scale", scaleVariable)
	s := newScaleRun(t, length)
	idle := s.usage()
	s.reviewAll(length)
	s.report(idle, s.usage())
	mails := s.searchMails("")
	if err := judge(int(s.started.Load()), recipientsOf(nil), mails).err(); err != nil {
		t.Error(err)
	}
	if failed := s.countRows("jobs", "state <> 'succeeded'"); failed > 0 {
		t.Errorf("%d reviews have not succeeded", failed)
	}
	printLine("%d mails: %v", len(mails), map[bool]string{true: "a mail was lost or doubled", false: "0 lost, 0 doubled"}[t.Failed()])
}

type scaleRun struct {
	*installation
	postgres *cluster
	server   *temporalServer
	workers  []*exec.Cmd
	changes  int // in the depot

	started, finished atomic.Int64 // reviews
	rate              atomic.Int64 // reviews finished in the last half minute
	inModel           atomic.Int64 // calls
	most              int64        // reviews in progress
}

func newScaleRun(t *testing.T, length time.Duration) *scaleRun {
	t.Helper()
	s := &scaleRun{changes: int(length.Seconds() * highestRate)}
	s.installation = newInstallation(t, writeDepot(t, s.changes))
	binaries := postgresBinaries(t)
	s.postgres = startCluster(t, binaries, seedCluster(t, binaries), durable)
	s.database = &storetest.Database{URL: secret.New(s.postgres.url(seedDatabase))}
	s.allow("//depot/...")
	s.server = startTemporalOnPostgres(t, s.postgres)
	s.namespace, s.temporal = temporaltest.NewAt(t, temporal.Config{Address: s.server.Address}, contract.Attributes()...)
	wait := func() {
		s.inModel.Add(1)
		defer s.inModel.Add(-1)
		time.Sleep(modelLatency)
	}
	s.beforeAnswer.Store(&wait)
	s.env = append(s.env,
		"CRITICIZER_TEMPORAL_ADDRESS="+s.temporal.Address, "CRITICIZER_TEMPORAL_NAMESPACE="+s.temporal.Name,
		"CRITICIZER_DATABASE_URL="+s.database.URL.Reveal(), "CRITICIZER_LOG_LEVEL=warn",
		fmt.Sprintf("CRITICIZER_WORKER_LLM_AT_ONCE=%d", maxInProgress), "CRITICIZER_LLM_MAX_TOKENS_PER_DAY=0")
	run(t, s.path("p4"), "info", "-s") // builds p4sim's index
	for range scaleWorkers {
		s.workers = append(s.workers, s.startWorker())
	}
	return s
}

// The databases of Temporal in a cluster.
const historyDatabase, visibilityDatabase = "temporal", "visibility"

// startTemporalOnPostgres starts Temporal's own server with its history and visibility in
// new databases of a cluster.
func startTemporalOnPostgres(t *testing.T, c *cluster) *temporalServer {
	t.Helper()
	tool := lookUp("../build/bin/temporal-sql-tool")
	if tool == "" {
		need(t, "there is no temporal-sql-tool: run make build/bin/temporal-sql-tool")
	}
	for database, schema := range map[string]string{historyDatabase: "temporal", visibilityDatabase: "visibility"} {
		c.execute(t, "create database "+database)
		sql := []string{"--plugin", "postgres12", "--ep", "127.0.0.1", "-p", c.port, "-u", "super", "--db", database}
		run(t, tool, append(sql, "setup-schema", "-v", "0.0")...)
		run(t, tool, append(sql, "update-schema", "--schema-name", "postgresql/v12/"+schema)...)
	}
	return startTemporalServer(t, fmt.Sprintf(`
  defaultStore: history
  visibilityStore: visibility
  numHistoryShards: %d
  datastores:
    history: {sql: {pluginName: postgres12, connectProtocol: tcp, connectAddr: "127.0.0.1:%[2]s", user: super, databaseName: %[3]s, maxConns: 50, maxIdleConns: 50}}
    visibility: {sql: {pluginName: postgres12, connectProtocol: tcp, connectAddr: "127.0.0.1:%[2]s", user: super, databaseName: %[4]s, maxConns: 20, maxIdleConns: 20}}`,
		historyShards, c.port, historyDatabase, visibilityDatabase), "", "")
}

// reviewAll starts reviews, and returns when all that were started have ended.
func (s *scaleRun) reviewAll(length time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var watching sync.WaitGroup
	conn := s.database.Conn(s.t)
	watching.Go(func() {
		s.watch(ctx, func() (ended int64, err error) {
			err = conn.QueryRow(ctx, "select count(*) from criticizer.jobs where finished_at is not null").Scan(&ended)
			return ended, err
		})
	})
	defer watching.Wait()
	defer cancel()
	s.startReviews(length)
	printLine("%d reviews are started, waiting for the end of %d", s.started.Load(), s.inProgress())
	const tooLong = 5 * time.Minute
	last, at := s.finished.Load(), time.Now()
	for s.inProgress() > 0 {
		time.Sleep(time.Second)
		if now := s.finished.Load(); now > last {
			last, at = now, time.Now()
		}
		if time.Since(at) > tooLong {
			s.t.Fatalf("no review has ended for %s; %d are in progress", tooLong, s.inProgress())
		}
	}
}

func (s *scaleRun) inProgress() int64 { return s.started.Load() - s.finished.Load() }

// startReviews starts reviews at a rising rate as long as those in progress can end in
// time.
func (s *scaleRun) startReviews(length time.Duration) {
	const step, atOnce = 100 * time.Millisecond, 32
	began, due := time.Now(), 0.0
	var starting sync.WaitGroup
	defer starting.Wait()
	free := make(chan struct{}, atOnce)
	for now := range time.Tick(step) {
		elapsed := now.Sub(began)
		if s.late(elapsed, length) || s.t.Context().Err() != nil {
			return
		}
		due += highestRate * min(1, elapsed.Seconds()/(length.Seconds()/3)) * step.Seconds()
		for ; due >= 1; due-- {
			if s.inProgress() >= maxInProgress {
				due = 0
				break
			}
			n := int(s.started.Add(1))
			if n > s.changes {
				s.started.Add(-1)
				return
			}
			free <- struct{}{}
			starting.Go(func() { s.startReview(n); <-free })
		}
	}
}

// late reports whether the reviews in progress need the rest of the time.
func (s *scaleRun) late(elapsed, length time.Duration) bool {
	const half = 30 * time.Second // the time that rate counts
	left := length - elapsed - modelLatency
	if elapsed < modelLatency+half {
		return left <= half
	}
	return time.Duration(s.inProgress())*half > left*time.Duration(max(1, s.rate.Load()))
}

// startReview starts a review with the options of the starter, which would take more
// processor time than all other parts if it were a process for each.
func (s *scaleRun) startReview(n int) {
	req := review.Request{Changelist: review.Changelist(n), Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", review.Changelist(n), 1)}
	var err error
	started := poll(testTimeout, time.Second, func() bool { // an overloaded server rejects starts
		_, err = s.namespace.ExecuteWorkflow(s.t.Context(), contract.StartOptions(req), workflows.ReviewChangelist, req)
		return err == nil
	})
	if !started {
		s.t.Errorf("start review %d: %v", n, err)
	}
}

// watch counts the reviews that have ended each second, and prints the progress every 15 s.
func (s *scaleRun) watch(ctx context.Context, countEnded func() (int64, error)) {
	const seconds, shown = 30, 15
	began, history := time.Now(), []int64{0}
	for range time.Tick(time.Second) {
		finished, err := countEnded()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.t.Error(err)
			return
		}
		s.finished.Store(finished)
		s.most = max(s.most, s.inProgress())
		history = append(history, finished)
		s.rate.Store(finished - history[max(0, len(history)-1-seconds)])
		if len(history)%shown == 0 {
			printLine("%4s: %5d reviews started, %5d ended (%.1f/s), %4d in progress, %d of them in the model; worker %d MB", time.Since(began).Round(time.Second),
				s.started.Load(), finished, float64(finished-history[max(0, len(history)-1-shown)])/shown, s.inProgress(), s.inModel.Load(), s.workerMemory("VmRSS"))
		}
	}
}

// workerMemory returns the memory of the largest worker in MB.
func (s *scaleRun) workerMemory(figure string) (most int) {
	for _, worker := range s.workers {
		most = max(most, memoryOf(worker.Process.Pid, figure))
	}
	return most
}

// A scaleUsage is what the parts have used so far.
type scaleUsage struct {
	commits, bytes map[string]int // by database
	wal            int            // bytes written ahead
	processor      map[string]time.Duration
}

func (s *scaleRun) usage() scaleUsage {
	s.t.Helper()
	u := scaleUsage{commits: map[string]int{}, bytes: map[string]int{}, processor: map[string]time.Duration{
		"Temporal server": processorTime(s.server.process.Process.Pid),
		"Postgres":        processorTime(s.postgres.server.Process.Pid),
	}}
	for _, worker := range s.workers {
		u.processor["workers with p4"] += processorTime(worker.Process.Pid)
	}
	for _, name := range []string{historyDatabase, visibilityDatabase, seedDatabase} {
		var commits, bytes int
		s.queryRow(fmt.Sprintf("select xact_commit, pg_database_size(datname) from pg_stat_database where datname = '%s'", name), &commits, &bytes)
		u.commits[name], u.bytes[name] = commits, bytes
	}
	s.queryRow("select (pg_current_wal_lsn() - '0/0')::bigint", &u.wal)
	return u
}

// report prints the measured figures as rows of docs/measured.md, and what follows from them
// for other numbers of reviews.
func (s *scaleRun) report(before, after scaleUsage) {
	s.t.Helper()
	reviews := int(s.finished.Load())
	rates := []int{10_000, 100_000} // per hour
	printLine("| per review | measured | calculated for %d reviews/hour | for %d |\n|---|---:|---:|---:|", rates[0], rates[1])
	for _, name := range slices.Sorted(maps.Keys(after.processor)) {
		each := (after.processor[name] - before.processor[name]).Seconds() / float64(reviews)
		printLine("| processor time of %s | %.0f ms | %.1f cores | %.1f cores |", name, each*1000, each*float64(rates[0])/3600, each*float64(rates[1])/3600)
	}
	row := func(what, unit string, total int) {
		each := float64(total) / float64(reviews)
		printLine("| %s | %.1f | %.0f/s | %.0f/s |", what+", "+unit, each, each*float64(rates[0])/3600, each*float64(rates[1])/3600)
	}
	for _, name := range []string{historyDatabase, visibilityDatabase, seedDatabase} {
		row("database "+name, "transactions", after.commits[name]-before.commits[name])
		row("database "+name, "KB", (after.bytes[name]-before.bytes[name])/1000)
	}
	row("write-ahead log", "KB", (after.wal-before.wal)/1000)
	var perHour, firstMedian, median, longest float64
	visibility := storetest.Database{URL: secret.New(s.postgres.url(visibilityDatabase))}
	err := visibility.Conn(s.t).QueryRow(s.t.Context(), timesOfReviews).Scan(&perHour, &firstMedian, &median, &longest)
	if err != nil {
		s.t.Fatal(err)
	}
	printLine("a worker's memory at most: %d MB", s.workerMemory("VmHWM"))
	printLine("%d reviews, at most %d in progress; %.0f per hour; %.0f s each while they kept up, %.0f s in the middle, %.0f s at most",
		reviews, s.most, perHour, firstMedian, median, longest)
}

// timesOfReviews returns the reviews per hour while the middle half of them ended, and
// the seconds that one took: the median of the tenth that was started first, the median
// and the maximum of all.
const timesOfReviews = `
	with reviews as (
		select close_time, extract(epoch from close_time - start_time)::float8 as took, ntile(10) over (order by start_time) as tenth
		from executions_visibility where workflow_type_name = 'ReviewChangelist' and close_time is not null)
	select 1800 * count(*) / extract(epoch from percentile_disc(0.75) within group (order by close_time)
			- percentile_disc(0.25) within group (order by close_time))::float8,
		percentile_disc(0.5) within group (order by took) filter (where tenth = 1),
		percentile_disc(0.5) within group (order by took), max(took)
	from reviews`
