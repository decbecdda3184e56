// Package queue measures how fast the rewrite queue and riverqueue/river claim and
// complete jobs on the same Postgres. The product does not depend on River.
package queue

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/criticizer/criticizer/internal/postgres/postgrestest"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
)

const (
	// jobs is the number of jobs per round.
	jobs = 20_000
	// finished is the number of completed jobs in the full table.
	finished = 1_000_000
	// claimers is the number of concurrent claimers, each with one batch.
	claimers  = 4
	batchSize = 1000
)

func BenchmarkQueue(b *testing.B) {
	b.Run("rewrite-claim", compareRiver)
	b.Run("among-finished", amongFinished)
}

// compareRiver reports the rates of the queue and of River with empty jobs, and their
// ratio. Rounds alternate, so that both run under the same load.
func compareRiver(b *testing.B) {
	queue, river := newQueue(b), newRiver(b)
	var queueTime, riverTime time.Duration
	rounds := 0
	for b.Loop() {
		queueTime += queue.drain(b)
		riverTime += river.drain(b)
		rounds++
	}
	report(b, "queue_jobs/s", rounds, queueTime)
	report(b, "river_jobs/s", rounds, riverTime)
	b.ReportMetric(riverTime.Seconds()/queueTime.Seconds(), "queue/river")
}

// amongFinished compares an empty table with one of a million completed jobs.
func amongFinished(b *testing.B) {
	fresh, full := newQueue(b), newQueue(b)
	full.fill(b, finished)
	var freshTime, fullTime time.Duration
	rounds := 0
	for b.Loop() {
		freshTime += fresh.drain(b)
		fullTime += full.drain(b)
		rounds++
	}
	report(b, "empty_jobs/s", rounds, freshTime)
	report(b, "full_jobs/s", rounds, fullTime)
	b.ReportMetric(freshTime.Seconds()/fullTime.Seconds(), "full/empty")
}

func report(b *testing.B, unit string, rounds int, d time.Duration) {
	b.Helper()
	b.ReportMetric(float64(rounds*jobs)/d.Seconds(), unit)
}

// A queue is the rewrite queue of the product.
type queue struct {
	rewrites *store.Queue
	conn     *pgx.Conn
}

func newQueue(b *testing.B) queue {
	b.Helper()
	d := storetest.New(b)
	q := queue{d.Open(b, store.RoleWorker), d.Conn(b)}
	q.exec(b, `insert into complaint_rewrite.requests values ('00000000-0000-0000-0000-000000000001', 'message:x')`)
	return q
}

const insert = `insert into complaint_rewrite.jobs (job_id, rewrite_request_id, surface, rewrite_strength, language_pair,
	recipient_user_id, recipient_snapshot_id, recipient_preference_snapshot_id, routing_decision)
	select gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 'other', 'light_touch', '{"from": "en", "to": "de"}',
	gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
	'{"provider": "openai", "adapter_kind": "openai_responses", "model": "m", "prompt_version": "v1", "policy_version": "v1",
	  "execution_mode": "batch", "cache_eligible": true, "max_retries": 2}' from generate_series(1, $1)`

// fill adds completed jobs.
func (q queue) fill(b *testing.B, n int) {
	b.Helper()
	q.exec(b, insert, n)
	q.exec(b, `update complaint_rewrite.jobs set status = 'processing', claimed_at = now(), claimed_by = 'w'`)
	q.exec(b, `update complaint_rewrite.jobs set status = 'completed', result_ref = 'result:x'`)
	q.exec(b, `vacuum analyze complaint_rewrite.jobs`)
}

func (q queue) exec(b *testing.B, statement string, args ...any) {
	b.Helper()
	if _, err := q.conn.Exec(b.Context(), statement, args...); err != nil {
		b.Fatal(err)
	}
}

// drain adds a round of jobs and returns the time to claim and complete them.
func (q queue) drain(b *testing.B) time.Duration {
	b.Helper()
	q.exec(b, insert, jobs)
	q.exec(b, `analyze complaint_rewrite.jobs`)
	var done atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for range claimers {
		working.Go(func() {
			for q.claimAndFinish(b, &done) {
			}
		})
	}
	working.Wait()
	took := time.Since(began)
	if done.Load() != jobs {
		b.Fatalf("%d of %d jobs are completed", done.Load(), jobs)
	}
	return took
}

func (q queue) claimAndFinish(b *testing.B, done *atomic.Int64) bool {
	claim := rewrite.NewClaim(uuid.NewString(), "bench")
	claimed, err := q.rewrites.Claim(b.Context(), claim, rewrite.Batch, batchSize, nil)
	if err != nil || len(claimed) == 0 {
		if err != nil {
			b.Error(err)
		}
		return false
	}
	outcomes := make([]rewrite.Outcome, len(claimed))
	for i, job := range claimed {
		outcomes[i] = job.Done("result:x")
	}
	n, err := q.rewrites.Settle(b.Context(), claim, "", outcomes)
	if err != nil {
		b.Error(err)
		return false
	}
	done.Add(int64(n))
	return true
}

// A riverQueue is River with the settings of its own benchmark.
type riverQueue struct {
	pool    *pgxpool.Pool
	workers *river.Workers
	done    *atomic.Int64
}

type emptyJob struct{}

func (emptyJob) Kind() string { return "empty" }

type worker struct {
	river.WorkerDefaults[emptyJob]
}

func (worker) Work(context.Context, *river.Job[emptyJob]) error { return nil }

func newRiver(b *testing.B) riverQueue {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), postgrestest.NewEmpty(b).URL.Reveal())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil); err != nil {
		b.Fatal(err)
	}
	q := riverQueue{pool, river.NewWorkers(), new(atomic.Int64)}
	river.AddWorker(q.workers, worker{})
	return q
}

// drain adds a round of jobs and returns the time that River takes.
func (q riverQueue) drain(b *testing.B) time.Duration {
	b.Helper()
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           q.workers,
	})
	if err != nil {
		b.Fatal(err)
	}
	params := make([]river.InsertManyParams, jobs)
	for i := range params {
		params[i] = river.InsertManyParams{Args: emptyJob{}}
	}
	if _, err := client.InsertManyFast(b.Context(), params); err != nil {
		b.Fatal(err)
	}
	completed, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: jobs, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	began := time.Now()
	if err := client.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for range jobs {
		<-completed
	}
	took := time.Since(began)
	if err := client.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	return took
}
