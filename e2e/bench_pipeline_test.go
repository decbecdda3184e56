// Package bench measures reviews per second, the cost of a change with many files, and the
// trigger's command. Each is measured together with an alternative or a lower bound.
// make bench runs it.
package e2e

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// inFlight is the number of concurrent reviews, enough to keep all workers busy.
const inFlight = 32

// benchRounds is how often a benchmark is measured, in turn with those it is compared with:
// the load of a machine changes.
const benchRounds = 5

// BenchmarkPipeline measures complete reviews with stand-ins that reply at once, with
// empty tables and among a million finished reviews, and the lower bound: an empty workflow
// of three activities on the same server.
func BenchmarkPipeline(b *testing.B) {
	reviews, among, floor := newReviews(b, 0), newReviews(b, 1_000_000), newFloor(b)
	for range benchRounds {
		b.Run("reviews", reviews)
		b.Run("among-1000000", among)
		b.Run("floor", floor)
	}
}

// newReviews measures with a number of earlier reviews in the tables.
func newReviews(b *testing.B, earlier int) func(*testing.B) {
	b.Helper()
	n, _ := temporaltest.New(b, contract.Attributes()...)
	database := storetest.New(b)
	conn := database.Conn(b)
	_, err := conn.Exec(b.Context(), `
		insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, state, outcome, finished_at)
		select 'earlier-' || n, 1000000 + n, 1, 'bench', '', 'succeeded', 'clean', now() from generate_series(1, $1) as n`, earlier)
	if err == nil {
		_, err = conn.Exec(b.Context(), `vacuum analyze criticizer.jobs`) // as autovacuum does after a while
	}
	if err != nil {
		b.Fatal(err)
	}
	serveReviews(b, n, database, activitiestest.New())
	return measure(b, "reviews/s", func(ctx context.Context, i int) error {
		req := review.Request{Changelist: review.Changelist(i), Version: 1, ServerID: "bench", Key: review.DefaultKey("bench", review.Changelist(i), 1)}
		run, err := n.ExecuteWorkflow(ctx, contract.StartOptions(req), workflows.ReviewChangelist, req)
		if err != nil {
			return err
		}
		return run.Get(ctx, nil)
	})
}

// serveReviews runs a worker of all stages with the real database, artifacts and redaction.
// Fakes of Perforce, the model and the mail server reply at once.
func serveReviews(tb testing.TB, n temporal.Namespace, database *storetest.Database, world *activitiestest.Fakes) {
	tb.Helper()
	redactor, err := redaction.New(redaction.Config{Key: secret.New("a key of this benchmark")})
	if err != nil {
		tb.Fatal(err)
	}
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	if err != nil {
		tb.Fatal(err)
	}
	open := func(db *store.DB, ns review.Namespace) *artifact.Store {
		s, err := artifact.New(db.Blobs(ns), artifact.Config{Namespace: ns, Keyset: keyset, TTL: time.Hour})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	bookkeeping, fetch, redact, llm, notify := database.Open(tb, store.RoleBookkeeping), database.Open(tb, store.RoleFetch),
		database.Open(tb, store.RoleRedact), database.Open(tb, store.RoleLLM), database.Open(tb, store.RoleNotify)
	serve(tb, n, contract.QueueBookkeeping, workflows.ReviewChangelist, &activities.Bookkeeper{Jobs: bookkeeping, Resets: n})
	serve(tb, n, contract.QueueFetch, nil, &activities.Fetcher{Changes: world, Recipients: fetch, Contents: fetch, Raw: open(fetch, review.NamespaceRaw)})
	serve(tb, n, contract.QueueRedact, nil, &activities.Redactor{
		Raw: open(redact, review.NamespaceRaw), Redacted: open(redact, review.NamespaceRedacted), Pipeline: redactor,
	})
	serve(tb, n, contract.QueueLLM, nil, &activities.Model{
		Redacted: open(llm, review.NamespaceRedacted), Reports: open(llm, review.NamespaceReport), Answers: open(llm, review.NamespaceRedacted), Accounts: llm,
		Reviewer: world, Pipeline: redactor,
	})
	serve(tb, n, contract.QueueNotify, nil, &activities.Notifier{
		Log: discard, Reports: open(notify, review.NamespaceReport), Outbox: notify, Post: world,
	})
}

// newFloor measures three empty activities, as the design has three stages.
func newFloor(b *testing.B) func(*testing.B) {
	b.Helper()
	n, _ := temporaltest.New(b, contract.Attributes()...)
	serve(b, n, "floor", threeStages, &empty{})
	return measure(b, "reviews/s", func(ctx context.Context, _ int) error {
		run, err := n.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "floor"}, threeStages)
		if err != nil {
			return err
		}
		return run.Get(ctx, nil)
	})
}

type empty struct{}

// Stage does nothing.
func (*empty) Stage() error { return nil }

func threeStages(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 3 {
		if err := workflow.ExecuteActivity(ctx, (*empty).Stage).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// serve runs a worker until the benchmark ends. If flow is nil, it serves activities only.
func serve(tb testing.TB, n temporal.Namespace, queue string, flow, acts any) {
	tb.Helper()
	w := worker.New(n.Client, queue, worker.Options{
		DisableWorkflowWorker: flow == nil,
		Interceptors:          []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: func(s string) string { return s }, Log: discard}},
	})
	if flow != nil {
		w.RegisterWorkflow(flow)
	}
	w.RegisterActivity(acts)
	if err := w.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Stop)
}

// measure runs some work that does not count, and returns a benchmark of the rate of work,
// inFlight at a time.
func measure(b *testing.B, unit string, work func(ctx context.Context, i int) error) func(*testing.B) {
	b.Helper()
	doAll(b, 1, inFlight, work)
	next := 1 + inFlight
	return func(b *testing.B) {
		b.Helper()
		doAll(b, next, b.N, work)
		next += b.N
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
		b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
	}
}

// doAll runs work n times, numbered from first.
func doAll(b *testing.B, first, n int, work func(ctx context.Context, i int) error) {
	b.Helper()
	var done atomic.Int64
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for i := int(done.Add(1)); i <= n; i = int(done.Add(1)) {
				if err := work(b.Context(), first+i-1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}
