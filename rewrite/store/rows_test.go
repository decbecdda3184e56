package store_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
)

// A job does not wait until its text has expired.
func TestDeferralIsBounded(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	late := order(func(o *rewrite.Order) { o.NotBeforeAt = new(time.Now().Add(97 * time.Hour)) })
	if _, err := q.backend.Enqueue(t.Context(), []rewrite.SealedOrder{sealed(late, "text")}); err == nil {
		t.Error("a job may begin after its text has expired")
	}
}

// max_retries of a decision bounds the attempts.
func TestMaxRetriesBoundsAttempts(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for retries, want := range []int{1, 2, 3, 3} {
		id := q.enqueue(t, order(func(o *rewrite.Order) { o.MaxAttempts, o.Routing.MaxRetries = 3, new(retries) }))[0]
		if got := q.job(t, id).MaxAttempts; got != want {
			t.Errorf("max_retries %d: max_attempts is %d, want %d", retries, got, want)
		}
	}
}

// The database evaluates a decision and the languages while the job is queued, so neither
// changes when or after it is claimed.
func TestDecisionOfClaimedJobIsFinal(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(t, order())
	const decide = `update complaint_rewrite.jobs set routing_decision = routing_decision || '{"model": "you never clean"}'`
	for statement, want := range map[string]string{
		decide + `, status = 'processing', claimed_at = now(), claimed_by = 'w'`: "42501",
		claimed + decide + `, status = 'queued'`:                                 "42501",
		claimed + decide:                                                         "42501",
		claimed + `update complaint_rewrite.jobs set language_pair = '{}'`:       "42501",
	} {
		if refused := refusal(t, q.conn, "", statement); refused == nil || refused.Code != want {
			t.Errorf("%s: %v, want code %s", statement, refused, want)
		}
	}
}

// The worker can neither change the result of an ended job nor the counts of a run, and a
// run that was terminated ends with the next one.
func TestRecordsAreFinal(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.enqueue(t, order())[0]
	c, _ := q.claim(t, rewrite.Async, 1)
	testkit.NoError(t, q.BeginRun(t.Context(), c.RunID, rewrite.AsyncLane, 5))
	must(q.Settle(t.Context(), c, "", []rewrite.Outcome{{JobID: id, Status: rewrite.Completed, Result: "result:x"}}))(t)
	if refused := refusal(t, q.conn, string(store.RoleWorker), `update complaint_rewrite.jobs set result_ref = 'result:y'`); refused == nil || refused.Code != "42501" {
		t.Errorf("change of a result: %v", refused)
	}
	exec(t, q.conn, `update complaint_rewrite.runs set started_at = now() - interval '3 hours'`)
	testkit.NoError(t, q.BeginRun(t.Context(), uuid.NewString(), rewrite.AsyncLane, 5))
	runs := must(q.operator.Runs(t.Context(), 10))(t)
	if len(runs) != 2 || runs[0].FinishedAt != nil || runs[1].FinishedAt == nil || runs[1].SucceededCount != 1 {
		t.Errorf("runs are %+v", runs)
	}
}

// Backends see why and when: the last error, the attempts, the time and the position.
func TestStatesView(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	ids := q.enqueue(t, order(), order(), order(batchMode))
	q.claim(t, rewrite.Async, 1)
	for i, want := range []string{"processing -", "queued 1", "queued 1"} {
		got := query[string](t, q.conn, `select status || ' ' || coalesce(position::text, '-') from complaint_rewrite.job_states where job_id = '`+ids[i]+`'`)
		if got != want {
			t.Errorf("job %d is %q, want %q", i, got, want)
		}
	}
	exec(t, q.conn, `set role complaint_rewrite_backend; select last_error, attempt_count, max_attempts, not_before_at, position from complaint_rewrite.job_states; reset role`)
}

// Backends whose transactions are open store the same new texts, in opposite orders, and
// neither wait for each other nor deadlock.
func TestOpenTransactionsDoNotWait(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var open [2]pgx.Tx
	for i := range open {
		conn := must(pgx.Connect(t.Context(), q.conn.Config().ConnString()))(t)
		defer func() { testkit.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
		open[i] = must(conn.Begin(t.Context()))(t)
		must(open[i].Exec(t.Context(), `set local lock_timeout = '2s'; set local role complaint_rewrite_backend`))(t)
	}
	for _, step := range []struct{ tx, text int }{{0, 1}, {1, 2}, {0, 2}, {1, 1}} {
		body := must(json.Marshal(sealed(order(), strings.Repeat("x", step.text))))(t)
		must(open[step.tx].Exec(t.Context(), `select complaint_rewrite.enqueue($1)`, body))(t)
	}
	for _, tx := range open {
		testkit.NoError(t, tx.Commit(t.Context()))
	}
	q.enqueue(t, order()) // the text is stored: no copy more
	_, jobs := q.claim(t, rewrite.Async, 10)
	if stored := query[int](t, q.conn, `select count(*) from complaint_rewrite.messages`); len(jobs) != 5 || stored != 5 {
		t.Errorf("%d jobs, %d texts, want 5 and 5", len(jobs), stored)
	}
	q.enqueue(t, order())
	if stored := query[int](t, q.conn, `select count(*) from complaint_rewrite.messages`); stored != 5 {
		t.Errorf("%d texts after another job with a stored text, want 5", stored)
	}
}

// Files with the same new requests in opposite orders do not deadlock.
func TestEnqueueInOppositeOrders(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for range 3 {
		var files [2][]rewrite.SealedOrder
		for range 20 {
			one := order()
			files[0] = append(files[0], sealed(one, "text"))
			files[1] = append(files[1], sealed(order(func(o *rewrite.Order) { o.RequestID = one.RequestID }), "text"))
		}
		slices.Reverse(files[1])
		var calls errgroup.Group
		for _, orders := range files {
			calls.Go(func() error {
				receipts, err := q.backend.Enqueue(t.Context(), orders)
				if len(receipts) > 0 && receipts[0].JobID == "" {
					t.Errorf("receipts %+v name no job", receipts)
				}
				return err
			})
		}
		testkit.NoError(t, calls.Wait())
	}
}

// The audit log records who has read a result (security 9.4.3).
func TestResultsAreAudited(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.enqueue(t, order())[0]
	c, _ := q.claim(t, rewrite.Async, 1)
	_, err := q.backend.Result(t.Context(), id)
	if failure.ClassOf(err) != failure.NotFound {
		t.Errorf("result of a job in progress: %v", err)
	}
	result := sealed(order(), "text").Text
	testkit.NoError(t, store.Texts{Queue: q.Queue}.PutBlob(t.Context(), result.ID, result.Body, 0))
	must(q.Settle(t.Context(), c, "", []rewrite.Outcome{{JobID: id, Status: rewrite.Completed, Result: "result:" + result.ID}}))(t)
	got, err := q.backend.Result(t.Context(), id)
	if testkit.NoError(t, err); string(got.Body) != string(sealed(order(), "text").Text.Body) {
		t.Errorf("the result is %q", got.Body)
	}
	found := query[string](t, q.conn, `select string_agg(detail ->> 'found', ' ' order by id) from complaint_rewrite.audit_log
		where action = 'artifact.read' and object = 'job:`+id+`' and actor = session_user`)
	if found != "false true" {
		t.Errorf("recorded reads: %q", found)
	}
}
