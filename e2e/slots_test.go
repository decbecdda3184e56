package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
)

// hot is a pattern with one slot.
const hot = "//depot/hot/..."

// countedSlots counts how often reviews ask for their slots.
type countedSlots struct {
	*store.DB
	limits map[string]int
	asked  atomic.Int64
}

func (c *countedSlots) AcquireSlots(ctx context.Context, key string, limits map[string]int) (bool, error) {
	c.asked.Add(1)
	return c.DB.AcquireSlots(ctx, key, limits)
}

// queueUp makes n reviews wait for a slot, behind all others.
func queueUp(tb testing.TB, database *storetest.Database, n int) {
	tb.Helper()
	conn := database.Conn(tb)
	defer func() { _ = conn.Close(tb.Context()) }()
	for _, statement := range []string{
		`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id)
			select 'waiting-' || n, 1000000 + n, 1, 'bench', gen_random_uuid()::text from generate_series(1, $1::integer) as n`,
		`insert into criticizer.slots (changelist_id, review_version, pattern, by_bot, asked_at, state)
			select 1000000 + n, 1, '` + hot + `', false, now() + interval '1 hour', 'awaited' from generate_series(1, $1::integer) as n`,
	} {
		if _, err := conn.Exec(tb.Context(), statement, n); err != nil {
			tb.Fatal(err)
		}
	}
	// As autovacuum does, because a database that another test had holds the rows that it has
	// deleted; the statistics of this session must not count later.
	for _, statement := range []string{"vacuum (analyze) criticizer.jobs, criticizer.slots", "select pg_stat_force_next_flush()"} {
		if _, err := conn.Exec(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
}

// Reviews of one path go through its slot one after another, each woken by the one before,
// without asking meanwhile. The rows that this reads do not depend on how many reviews wait.
func TestSlotsAtConstantCost(t *testing.T) {
	t.Parallel()
	const reviews, waiting, rowsPerReview = 12, 10_000, 200
	database := storetest.New(t)
	queueUp(t, database, waiting)
	conn := database.Conn(t)
	// rowsRead counts the rows and entries of indexes that ended sessions have read of the
	// tables of the concurrency limiter.
	rowsRead := func() (n int) {
		err := conn.QueryRow(t.Context(), `
			select (select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables where relname in ('jobs', 'slots'))
			     + (select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('jobs', 'slots'))`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := rowsRead()
	slots := &countedSlots{limits: map[string]int{hot: 1}}
	t.Run("reviews", func(t *testing.T) { passOneSlot(t, database, slots, reviews) })
	if n := slots.asked.Load(); n < reviews || n > 2*reviews {
		t.Errorf("%d reviews asked %d times for their slot, want once, and once when woken", reviews, n)
	}
	waitFor(t, "the sessions of the workers to end", func() bool {
		var open int
		err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`).Scan(&open)
		return err == nil && open == 0
	})
	if read := rowsRead() - before; read == 0 || read > reviews*rowsPerReview {
		t.Errorf("%d reviews read %d rows of jobs and slots among %d waiting, want at most %d each", reviews, read, waiting, rowsPerReview)
	}
}

// passOneSlot runs reviews that share one slot.
func passOneSlot(t *testing.T, database *storetest.Database, slots *countedSlots, reviews int) {
	t.Helper()
	n, _ := temporalnstest.New(t)
	world := activitiestest.New()
	world.SetSlots([]string{hot}, 0)
	serveReviews(t, n, database, world, slots)
	ctx, done := context.WithTimeout(t.Context(), 2*time.Minute)
	defer done()
	var runs []client.WorkflowRun
	for i := range reviews {
		cl := review.Changelist(i + 1)
		req := review.Request{Changelist: cl, Version: 1, ServerID: "bench", Key: review.DefaultKey("bench", cl, 1)}
		run, err := n.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: req.Key, TaskQueue: activities.QueueBookkeeping, TypedSearchAttributes: workflows.StartAttributes(req),
		}, workflows.ReviewChangelist, req)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	// A review that is woken before it has reported that it waits is woken again, as the
	// workers do.
	for _, run := range runs {
		ended := make(chan error, 1)
		go func() { ended <- run.Get(ctx, nil) }()
		for tick := time.NewTicker(time.Second); ended != nil; {
			select {
			case err := <-ended:
				if ended = nil; err != nil {
					t.Fatal(err)
				}
			case <-tick.C:
				if err := slots.PassOnSlots(ctx, "", slots.limits, n.WakeForSlots); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkSlots measures one review that acquires a slot, ends and passes it on, among
// waiting reviews.
func BenchmarkSlots(b *testing.B) {
	few, many := newSlotQueue(b, 10), newSlotQueue(b, 100_000)
	for range benchRounds {
		b.Run("waiting=10", few)
		b.Run("waiting=100000", many)
	}
}

func newSlotQueue(b *testing.B, waiting int) func(*testing.B) {
	b.Helper()
	database := storetest.New(b)
	queueUp(b, database, waiting)
	books, fetch := database.Open(b, store.RoleBookkeeping), database.Open(b, store.RoleFetch)
	limits := map[string]int{hot: 1}
	cl, woken := review.Changelist(0), "" // woken holds the slot
	return func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			cl++
			req := review.Request{Changelist: cl, Version: 1, ServerID: "bench", Key: review.DefaultKey("bench", cl, 1)}
			_, err := books.OpenJob(b.Context(), req, "run")
			if err == nil {
				err = fetch.RequireSlots(b.Context(), cl, 1, []string{hot}, false)
			}
			if err == nil {
				_, err = books.AcquireSlots(b.Context(), req.Key, limits)
			}
			if ended := woken; err == nil && ended != "" {
				if err = books.CancelJob(b.Context(), ended); err == nil {
					err = books.PassOnSlots(b.Context(), ended, limits, func(_ context.Context, id, _ string) error { woken = id; return nil })
				}
			} else {
				woken = req.Key
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "slots/s")
	}
}
