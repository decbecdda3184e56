package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
)

// A queue is the queue of one test, opened as its worker and as a backend.
type queue struct {
	*store.Queue // as the worker sees it
	backend      *store.Queue
	operator     *store.Queue
	conn         *pgx.Conn // the superuser's
}

func newQueue(t *testing.T) queue {
	t.Helper()
	d := storetest.New(t)
	conn := d.Conn(t)
	exec(t, conn, `do $$ begin execute format('alter database %I set timezone to ''Asia/Tokyo''', current_database()); end $$`)
	return queue{d.Open(t, store.RoleWorker), d.Open(t, store.RoleBackend), d.Open(t, store.RoleOperator), conn}
}

func order(edit ...func(*rewrite.Order)) rewrite.Order {
	o := rewrite.Order{
		RequestID: uuid.NewString(), Surface: rewrite.DirectMessage, Strength: rewrite.LightTouch,
		Languages:           rewrite.LanguagePair{From: "en", To: "de"},
		RecipientUserID:     uuid.NewString(),
		RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(),
		Routing: &rewrite.RoutingDecision{
			Provider: "openai", AdapterKind: rewrite.OpenAIResponses, Model: "m", PromptVersion: "v1", PolicyVersion: "p1", Mode: rewrite.Async,
		},
	}
	for _, e := range edit {
		e(&o)
	}
	return o
}

func batchMode(o *rewrite.Order) { o.Routing.Mode = rewrite.Batch }

func sealed(o rewrite.Order, text string) rewrite.SealedOrder {
	return rewrite.SealedOrder{Order: o, Text: rewrite.SealedText{ID: fmt.Sprintf("%064x", len(text)), Body: []byte("sealed " + text)}}
}

// enqueue creates jobs and returns their ids.
func (q queue) enqueue(t *testing.T, orders ...rewrite.Order) []string {
	t.Helper()
	all := make([]rewrite.SealedOrder, len(orders))
	for i, o := range orders {
		all[i] = sealed(o, "text")
	}
	receipts := must(q.backend.Enqueue(t.Context(), all))(t)
	ids := make([]string, len(receipts))
	for i, r := range receipts {
		ids[i] = r.JobID
	}
	return ids
}

func (q queue) job(t *testing.T, id string) rewrite.Job {
	t.Helper()
	return must(q.Job(t.Context(), id))(t)
}

// batchState returns the state of a batch, or none.
func (q queue) batchState(t *testing.T, id string) string {
	t.Helper()
	return query[string](t, q.conn, `select coalesce((select state from complaint_rewrite.batches where batch_id = $1), 'none')`, id)
}

// claim claims jobs as a new run.
func (q queue) claim(t *testing.T, mode rewrite.ExecutionMode, limit int) (rewrite.Claim, []rewrite.Job) {
	t.Helper()
	c := rewrite.NewClaim(uuid.NewString(), "worker 1 on test")
	jobs := must(q.Claim(t.Context(), c, mode, limit, nil))(t)
	return c, jobs
}

func idsOf(jobs []rewrite.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// Every field of a job is stored, and a request and recipient have one job (rewrite 4). One message
// for two recipients is two jobs; another message needs another request. Enqueue is all or nothing.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	o := order()
	first := q.enqueue(t, o, order(func(second *rewrite.Order) { second.RequestID = o.RequestID }))[0]
	again := must(q.backend.Enqueue(t.Context(), []rewrite.SealedOrder{sealed(o, "text")}))(t)
	if again[0].JobID != first || again[0].Created {
		t.Errorf("second enqueue: %+v, want job %s and not created", again[0], first)
	}
	third := order(func(third *rewrite.Order) { third.RequestID = o.RequestID })
	for _, other := range []rewrite.Order{o, third} {
		_, err := q.backend.Enqueue(t.Context(), []rewrite.SealedOrder{sealed(order(), "text"), sealed(other, "another text")})
		if err == nil || !strings.Contains(err.Error(), "exists with another text") {
			t.Errorf("another text: %v", err)
		}
	}
	if n := query[int](t, q.conn, `select count(*)::int from complaint_rewrite.jobs`); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
	job := q.job(t, first)
	if job.RequestID != o.RequestID || job.Task != rewrite.Task || job.Surface != o.Surface || job.Strength != o.Strength ||
		job.Languages != o.Languages || job.RecipientUserID != o.RecipientUserID || job.RecipientSnapshotID != o.RecipientSnapshotID ||
		job.RecipientPreferenceSnapshotID != o.RecipientPreferenceSnapshotID || job.Status != rewrite.Queued ||
		job.AttemptCount != 0 || job.MaxAttempts != 2 || *job.Routing != *o.Routing || job.NotBeforeAt != nil || job.ClaimedAt != nil || job.LastError != nil {
		t.Errorf("job is %+v", job)
	}
	if _, offset := job.CreatedAt.Zone(); offset != 0 {
		t.Errorf("created_at is %s, not in UTC", job.CreatedAt)
	}
}

// Claims take the oldest jobs up to the limit, and no deferred job before its time
// (rewrite 7.1).
func TestClaim(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	ids := q.enqueue(t, order(), order(func(o *rewrite.Order) { o.NotBeforeAt = &soon }), order(batchMode),
		order(func(o *rewrite.Order) { o.NotBeforeAt = &past }), order(), order())
	exec(t, q.conn, `update complaint_rewrite.jobs set created_at = created_at - interval '1 minute' where job_id = '`+ids[4]+`'`)
	c, jobs := q.claim(t, rewrite.Async, 2)
	testkit.NoError(t, q.BeginRun(t.Context(), c.RunID, rewrite.AsyncLane, 3))
	exec(t, q.conn, `update complaint_rewrite.runs set started_at = started_at - interval '1 minute'`)
	more, err := q.Claim(t.Context(), c, rewrite.Async, 3, nil) // another attempt of the run
	testkit.NoError(t, err)
	jobs = append(jobs, more...)
	if got, want := idsOf(jobs), []string{ids[4], ids[0], ids[3]}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	for _, job := range jobs {
		if job.Status != rewrite.Processing || job.ClaimedAt == nil || *job.ClaimedBy != "worker 1 on test" || job.AttemptCount != 0 {
			t.Errorf("claimed job is %+v", job)
		}
	}
	// The other jobs stay queued for the next run (rewrite 6.1).
	rest := q.job(t, ids[5])
	if rest.Status != rewrite.Queued || rest.LastError != nil {
		t.Errorf("job beyond the limit is %s, last_error %v", rest.Status, rest.LastError)
	}
	if _, next := q.claim(t, rewrite.Async, 3); !slices.Equal(idsOf(next), ids[5:]) {
		t.Errorf("the next run claimed %v, want %v", idsOf(next), ids[5:])
	}
}

// Concurrent claimers never get the same job, and together they get all (rewrite 7.1).
func TestClaimersShareTheQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	orders := make([]rewrite.Order, 200)
	for i := range orders {
		orders[i] = order()
	}
	want := q.enqueue(t, orders...)
	claimed := make(chan []string)
	for range 4 {
		go func() {
			var mine []string
			for {
				jobs, err := q.Claim(t.Context(), rewrite.NewClaim(uuid.NewString(), "w"), rewrite.Async, 7, nil)
				if err != nil || len(jobs) == 0 {
					break
				}
				mine = append(mine, idsOf(jobs)...)
			}
			claimed <- mine
		}()
	}
	var got []string
	for range 4 {
		got = append(got, <-claimed...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d claims of %d jobs", len(got), len(want))
	}
}

// A stale claim counts an attempt and queues the job, or fails it on the last attempt
// (rewrite 7.2, 8.2).
func TestStaleClaims(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	ids := q.enqueue(t, order(), order(func(o *rewrite.Order) { o.MaxAttempts = 1 }), order(), order(batchMode))
	q.claim(t, rewrite.Async, 2)
	exec(t, q.conn, `update complaint_rewrite.jobs set claimed_at = now() - interval '601 seconds' where status = 'processing'`)
	q.claim(t, rewrite.Async, 1) // fresh
	submitted := q.submit(t, ids[3])
	exec(t, q.conn, `update complaint_rewrite.jobs set claimed_at = now() - interval '1 year' where status = 'batch_submitted'`)
	run := uuid.NewString()
	n := must(q.RecoverStaleClaims(t.Context(), run, 600*time.Second))(t)
	if n != 2 {
		t.Errorf("%d recovered, want 2", n)
	}
	for i, want := range []struct {
		status   rewrite.Status
		attempts int
		err      string
	}{{rewrite.Queued, 1, "stale_claim_requeued"}, {rewrite.Failed, 1, "stale_claim_failed"}, {rewrite.Processing, 0, ""}, {rewrite.BatchSubmitted, 0, ""}} {
		job := q.job(t, ids[i])
		got := ""
		if job.LastError != nil {
			got = *job.LastError
		}
		if job.Status != want.status || job.AttemptCount != want.attempts || got != want.err {
			t.Errorf("job %d is %s after %d attempts, last_error %q; want %+v", i, job.Status, job.AttemptCount, got, want)
		}
	}
	if open, err := q.OpenBatches(t.Context()); err != nil || len(open) != 1 || open[0].BatchID != submitted {
		t.Errorf("open batches: %+v, %v", open, err)
	}
}

// A claim of a run that may be alive is not stale, however old it is (rewrite 7.2).
func TestStaleMeansDead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change string // of the run
		stale  int64
	}{
		"the run may be alive": {`select 1`, 0},
		"the run has ended":    {`update complaint_rewrite.runs set finished_at = now()`, 1},
		"the run is too old":   {`update complaint_rewrite.runs set started_at = now() - interval '3 hours'`, 1},
		"the next run has begun": {`insert into complaint_rewrite.runs (run_id, worker, max_jobs_per_run, started_at)
			values (gen_random_uuid(), 'rewrite_async', 5, now() + interval '1 minute')`, 1},
		"a run of another worker has begun": {`insert into complaint_rewrite.runs (run_id, worker, max_jobs_per_run, started_at)
			values (gen_random_uuid(), 'rewrite_batch_submitter', 5, now() + interval '1 minute')`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			q.enqueue(t, order())
			c, _ := q.claim(t, rewrite.Async, 1)
			testkit.NoError(t, q.BeginRun(t.Context(), c.RunID, rewrite.AsyncLane, 5))
			exec(t, q.conn, `update complaint_rewrite.jobs set claimed_at = now() - interval '1 hour'`)
			exec(t, q.conn, tt.change)
			n, err := q.RecoverStaleClaims(t.Context(), uuid.NewString(), time.Minute)
			if testkit.NoError(t, err); n != tt.stale {
				t.Errorf("%d claims are stale, want %d", n, tt.stale)
			}
		})
	}
}

// submit submits one job of the batch lane and returns the batch.
func (q queue) submit(t *testing.T, id string) string {
	t.Helper()
	c, jobs := q.claim(t, rewrite.Batch, 1)
	if !slices.Equal(idsOf(jobs), []string{id}) {
		t.Fatalf("claimed %v, want %s", idsOf(jobs), id)
	}
	batch := store.Batch{BatchID: uuid.NewString(), RoutingDecision: *jobs[0].Routing, LanguagePair: jobs[0].Languages, Tokens: 10}
	testkit.NoError(t, q.BeginSubmission(t.Context(), c, batch, idsOf(jobs), time.Minute))
	testkit.NoError(t, q.BeginCreation(t.Context(), c, batch.BatchID, "file-1", time.Minute))
	testkit.NoError(t, q.MarkSubmitted(t.Context(), c.RunID, batch.BatchID, rewrite.ProviderBatch{ID: "batch-" + batch.BatchID, Status: rewrite.BatchValidating}))
	return batch.BatchID
}

// A claim that was taken over or lost writes nothing.
func TestLostClaimWritesNothing(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.enqueue(t, order())[0]
	first, _ := q.claim(t, rewrite.Async, 1)
	second := rewrite.NewClaim(first.RunID, "worker 2 on test")
	adopted := must(q.TakeOver(t.Context(), second))(t)
	if !slices.Equal(idsOf(adopted), []string{id}) {
		t.Fatalf("adopted %v", idsOf(adopted))
	}
	begun := must(q.BeginJob(t.Context(), id, first.Token))(t)
	completed := must(q.Settle(t.Context(), first, "", []rewrite.Outcome{{JobID: id, Status: rewrite.Completed, Result: "result:x"}}))(t)
	failed := must(q.Settle(t.Context(), first, "", []rewrite.Outcome{{JobID: id, Status: rewrite.Failed, Attempts: 1, Error: "UNKNOWN"}}))(t)
	testkit.NoError(t, q.Release(t.Context(), first, 0))
	if begun+completed+failed != 0 || q.job(t, id).Status != rewrite.Processing {
		t.Errorf("the lost claim began %d, completed %d, failed %d, and the job is %s", begun, completed, failed, q.job(t, id).Status)
	}
	if n, err := q.Settle(t.Context(), second, "", []rewrite.Outcome{{JobID: id, Status: rewrite.Completed, Result: "result:x"}}); err != nil || n != 1 {
		t.Errorf("the claim itself completed %d, %v", n, err)
	}
}

// The database allows exactly the transitions of rewrite/docs/states.md and records each: random
// walks over all pairs of statuses (rewrite 3). No job is completed without processing, and
// none leaves a final status.
func TestTransitions(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.enqueue(t, order())[0]
	batch := uuid.New()
	exec(t, q.conn, `insert into complaint_rewrite.batches (batch_id, routing_decision, language_pair, requests, tokens, run_id)
		values ('`+batch.String()+`', '{}', '{}', 1, 1, gen_random_uuid())`)
	legal := drawn(t)
	for _, from := range rewrite.Statuses() {
		for _, to := range rewrite.Statuses() {
			if edge := edgeOf(from, to); legal[edge] && (from.Final() || from == rewrite.Queued && to == rewrite.Completed) {
				t.Errorf("rewrite/docs/states.md has the transition %s", edge)
			}
		}
	}
	random := rand.New(rand.NewPCG(3, 7))
	steps, now := 1, rewrite.Queued
	for range 400 {
		to := rewrite.Statuses()[random.IntN(6)]
		_, err := q.conn.Exec(t.Context(), `update complaint_rewrite.jobs set status = $2, claimed_at = now(), claimed_by = 'w', batch_id = $3,
			result_ref = 'result:x', last_error = 'e', last_error_at = now() where job_id = $1`, id, to, batch)
		if want := now == to || legal[edgeOf(now, to)]; (err == nil) != want {
			t.Fatalf("from %s to %s: %v, legal: %t", now, to, err, want)
		}
		if err == nil && now != to {
			now, steps = to, steps+1
		}
		if now.Final() { // begin another walk
			trail := must(q.Transitions(t.Context(), id))(t)
			if len(trail) != steps {
				t.Fatalf("%d transitions recorded, want %d", len(trail), steps)
			}
			id, steps, now = q.enqueue(t, order())[0], 1, rewrite.Queued
		}
	}
	for _, tamper := range []string{
		`update complaint_rewrite.transitions set to_status = 'completed'`, `delete from complaint_rewrite.transitions`, `truncate complaint_rewrite.transitions`,
	} {
		if _, err := q.conn.Exec(t.Context(), tamper); err == nil {
			t.Errorf("%s: was allowed", tamper)
		}
	}
}

// One worker at a time resolves a submission, after its lease has expired.
func TestSubmissionLease(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.enqueue(t, order(batchMode))[0]
	c, jobs := q.claim(t, rewrite.Batch, 1)
	testkit.NoError(t, q.BeginRun(t.Context(), c.RunID, rewrite.Submitter, 1))
	batch := store.Batch{BatchID: uuid.NewString(), RoutingDecision: *jobs[0].Routing, LanguagePair: jobs[0].Languages}
	testkit.NoError(t, q.BeginSubmission(t.Context(), c, batch, []string{id}, time.Minute))
	if _, ok, err := q.Lease(t.Context(), c, rewrite.Submitting, time.Minute); ok || err != nil {
		t.Fatalf("leased what is leased: %v", err)
	}
	exec(t, q.conn, `update complaint_rewrite.batches set leased_until = now(), created_at = created_at - interval '1 minute'`)
	exec(t, q.conn, `update complaint_rewrite.jobs set claimed_at = now() - interval '1 day'`)
	if n, err := q.RecoverStaleClaims(t.Context(), c.RunID, time.Minute); n != 0 || err != nil {
		t.Errorf("%d jobs recovered of a batch that the provider may have, %v", n, err)
	}
	other := rewrite.NewClaim(uuid.NewString(), "w")
	testkit.NoError(t, q.BeginRun(t.Context(), other.RunID, rewrite.Collector, 1))
	leased, ok, err := q.Lease(t.Context(), other, rewrite.Submitting, time.Minute)
	testkit.NoError(t, err)
	if !ok || leased.BatchID != batch.BatchID || leased.Age < time.Minute || leased.Age > 10*time.Minute {
		t.Fatalf("leased %+v", leased)
	}
	if err := q.BeginCreation(t.Context(), c, batch.BatchID, "file", time.Minute); failure.ClassOf(err) != failure.WriteConflict {
		t.Errorf("creation without the lease: %v", err)
	}
	freed := []rewrite.Outcome{{JobID: id, Status: rewrite.Queued, Error: rewrite.Overflow}}
	must(q.Settle(t.Context(), other, batch.BatchID, freed))(t)
	testkit.NoError(t, q.EndBatch(t.Context(), rewrite.Abandoned, "", batch.BatchID))
	if job := q.job(t, id); job.Status != rewrite.Queued || job.AttemptCount != 0 || job.BatchID != nil {
		t.Errorf("job of an abandoned batch: %+v", job)
	}
	if state := q.batchState(t, batch.BatchID); state != "abandoned" {
		t.Errorf("the batch is %s", state)
	}
}

// A claim that has lost a job submits nothing, and a batch that the provider refused gives
// its jobs back to the claim.
func TestSubmissionNeedsItsJobs(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	ids := q.enqueue(t, order(batchMode), order(batchMode))
	c, jobs := q.claim(t, rewrite.Batch, 2)
	begin := func() (string, error) {
		s := store.Batch{BatchID: uuid.NewString(), RoutingDecision: *jobs[0].Routing, LanguagePair: jobs[0].Languages, Tokens: 10}
		return s.BatchID, q.BeginSubmission(t.Context(), c, s, ids, time.Minute)
	}
	refused := must(begin())(t)
	testkit.NoError(t, q.DropSubmission(t.Context(), c, refused))
	if state := q.batchState(t, refused); state != "abandoned" {
		t.Errorf("the refused batch is %s", state)
	}
	if job := q.job(t, ids[0]); job.Status != rewrite.Processing || job.BatchID != nil {
		t.Errorf("a job of the refused batch is %+v", job)
	}
	must(q.operator.Cancel(t.Context(), ids[1], "olga", "T-1"))(t)
	lost, err := begin()
	wantClass(t, err, failure.WriteConflict)
	if state := q.batchState(t, lost); state != "none" {
		t.Errorf("the batch of a lost job is %s", state)
	}
}

// A run's counts are those of its transitions, in total and per model (rewrite 10).
func TestRunCounts(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	cfg := rewrite.RunConfig{RetryBackoffSeconds: []int{1}}
	second := func(o *rewrite.Order) { o.Routing.Model = "m2" }
	ids := q.enqueue(t, order(), order(), order(second), order(second))
	c := rewrite.NewClaim(uuid.NewString(), "worker 1 on test")
	testkit.NoError(t, q.BeginRun(t.Context(), c.RunID, rewrite.AsyncLane, 25))
	jobs := must(q.Claim(t.Context(), c, rewrite.Async, 4, nil))(t)
	must(q.Settle(t.Context(), c, "", []rewrite.Outcome{{JobID: ids[0], Status: rewrite.Completed, Result: "result:x"}}))(t)
	_, err := q.Settle(t.Context(), c, "", []rewrite.Outcome{
		cfg.AfterFailure(jobs[1], "CONTENT_POLICY", true), cfg.AfterFailure(jobs[2], "RATE_LIMITED", false), cfg.AfterFailure(jobs[3], "QUOTA_EXHAUSTED", false),
	})
	testkit.NoError(t, err)
	run := must(q.FinishRun(t.Context(), c.RunID))(t)
	if counts := [...]int{run.ClaimedCount, run.SucceededCount, run.FailedCount, run.RequeuedCount, run.RateLimitErrors, run.CapacityErrors}; counts != [...]int{4, 1, 1, 2, 1, 1} ||
		run.MaxJobsPerRun != 25 || run.FinishedAt == nil || run.StartedAt.IsZero() || run.RunID != c.RunID {
		t.Errorf("run is %+v", run)
	}
	if len(run.PerModel) != 2 || run.PerModel[1].Model != "m2" || run.PerModel[1].Provider != "openai" || run.PerModel[1].Requeued != 2 {
		t.Errorf("per model: %+v", run.PerModel)
	}
	skipped := uuid.NewString()
	testkit.NoError(t, q.SkipRun(t.Context(), db.SkipRunParams{RunID: skipped, Worker: rewrite.Submitter, MaxJobsPerRun: 25, Event: rewrite.Submitter.Skip()}))
	runs := must(q.operator.Runs(t.Context(), 10))(t)
	if len(runs) != 2 || runs[0].Event != "rewrite_batch_submitter skipped: no pending items" {
		t.Errorf("runs of the submitter: %+v", runs)
	}
}

// An operator ends an open batch: its tokens and jobs are released, late results change
// nothing, and the audit log records it.
func TestOperatorAbandonsBatch(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	ids := q.enqueue(t, order(batchMode), order(batchMode, func(o *rewrite.Order) { o.MaxAttempts = 1 }))
	batches := []string{q.submit(t, ids[0]), q.submit(t, ids[1])}
	for i, want := range []rewrite.Status{rewrite.Queued, rewrite.Failed} {
		if n, err := q.operator.AbandonBatch(t.Context(), batches[i], "olga", "T-3"); err != nil || n != 1 {
			t.Fatalf("abandoned %d jobs, %v", n, err)
		}
		if job := q.job(t, ids[i]); job.Status != want || job.AttemptCount != 1 || *job.LastError != rewrite.BatchAbandoned {
			t.Errorf("job is %+v, want it %s", job, want)
		}
		if n, err := q.Settle(t.Context(), rewrite.NewClaim(uuid.NewString(), ""), batches[i], []rewrite.Outcome{{JobID: ids[i], Status: rewrite.Completed, Result: "result:x"}}); n != 0 || err != nil {
			t.Errorf("a late result was written: %d, %v", n, err)
		}
	}
	if now, err := q.Enqueued(t.Context(), db.EnqueuedParams{Provider: "openai", Model: "m"}); now.Tokens != 0 || err != nil {
		t.Errorf("%d tokens are held, %v", now.Tokens, err)
	}
	if _, err := q.operator.AbandonBatch(t.Context(), batches[0], "olga", "T-3"); failure.ClassOf(err) != failure.WriteConflict {
		t.Errorf("second time: %v", err)
	}
	if n := query[int](t, q.conn, `select count(*)::int from complaint_rewrite.audit_log where action = 'rewrite.batch.abandon' and claimed = 'olga'`); n != 2 {
		t.Errorf("the audit log has %d entries", n)
	}
}

// Operators cancel and requeue jobs, and the audit log records it.
func TestOperatorRepairs(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	later := time.Now().Add(time.Hour)
	ids := q.enqueue(t, order(func(o *rewrite.Order) { o.NotBeforeAt = &later }), order(batchMode), order())
	if job, err := q.operator.Requeue(t.Context(), ids[0], "olga", "T-1"); err != nil || job.NotBeforeAt != nil || job.AttemptCount != 0 {
		t.Errorf("requeue of a deferred job: %+v, %v", job, err)
	}
	q.submit(t, ids[1])
	if _, err := q.operator.Requeue(t.Context(), ids[1], "olga", "T-1"); failure.ClassOf(err) != failure.WriteConflict {
		t.Errorf("requeue of a job at the provider: %v", err)
	}
	if job, err := q.operator.Cancel(t.Context(), ids[1], "olga", "T-2"); err != nil || job.Status != rewrite.Canceled {
		t.Errorf("cancel: %+v, %v", job, err)
	}
	if _, err := q.operator.Cancel(t.Context(), ids[1], "olga", "T-2"); failure.ClassOf(err) != failure.WriteConflict {
		t.Errorf("second cancel: %v", err)
	}
	audited := query[string](t, q.conn, `select string_agg(claimed || ' ' || action || ' ' || object || detail, ';' order by id) from complaint_rewrite.audit_log`)
	for _, want := range []string{"olga rewrite.requeue job:" + ids[0], "olga rewrite.cancel job:" + ids[1], "T-2"} {
		if !strings.Contains(audited, want) {
			t.Errorf("audit log lacks %q: %s", want, audited)
		}
	}
}
