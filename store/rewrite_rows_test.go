package store_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/criticizer/criticizer/store"
)

// enqueueRaw returns the refusal of arguments that a backend passes in SQL.
func (q queue) enqueueRaw(t *testing.T, job, sealed string) (code, text string) {
	t.Helper()
	refused := refusal(t, q.conn, string(store.RoleBackend), fmt.Sprintf(`select criticizer.enqueue_rewrite('%s', '%s')`, job, sealed))
	if refused == nil {
		return "", ""
	}
	return refused.Code, refused.Message + refused.Detail + refused.Hint
}

// Each field that the worker could not read is refused by its name, and no error holds a
// value: it may be the message.
func TestEnqueueRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const secretText = "you never clean"
	good := func() map[string]any {
		o := order()
		body := must(json.Marshal(o))(t)
		m := map[string]any{}
		testkit.NoError(t, json.Unmarshal(body, &m))
		m["sealed"] = map[string]any{"text": map[string]any{"id": strings.Repeat("a", 64), "body": "eA=="}}
		return m
	}
	call := func(m map[string]any) (string, string) {
		sealedText := must(json.Marshal(m["sealed"]))(t)
		delete(m, "sealed")
		job := must(json.Marshal(m))(t)
		return q.enqueueRaw(t, string(job), string(sealedText))
	}
	if code, text := call(good()); code != "" {
		t.Fatalf("a good order is refused: %s", text)
	}
	for field, values := range map[string][]any{
		"job_id":                           {secretText, 7, true},
		"rewrite_request_id":               {nil, secretText, []string{uuid.NewString()}},
		"recipient_user_id":                {nil, secretText},
		"recipient_snapshot_id":            {nil, secretText},
		"recipient_preference_snapshot_id": {nil, secretText},
		"task":                             {secretText, 1},
		"surface":                          {nil, secretText, 1},
		"rewrite_strength":                 {nil, secretText},
		"language_pair":                    {nil, "en", []string{"en", "de"}},
		"language_pair.from":               {nil, true, secretText, "", []string{"en"}, strings.Repeat("a", 9)},
		"language_pair.to":                 {nil, 1, secretText},
		"language_pair.text":               {secretText},
		"max_attempts":                     {0, -1, 51, 1.5, 2147483648, "3", true},
		"not_before_at": {
			"-infinity", "infinity", "now", secretText, 7, "2026-13-45T00:00:00Z", "1999-01-01T00:00:00Z",
			time.Now().Add(31 * 24 * time.Hour).Format(time.RFC3339),
		},
		"routing_decision":                {map[string]any{}, "async", []string{}, true},
		"routing_decision.provider":       {nil, secretText, ""},
		"routing_decision.adapter_kind":   {nil, secretText},
		"routing_decision.model":          {nil, secretText, "", strings.Repeat("m", 129), map[string]any{}},
		"routing_decision.prompt_version": {nil, secretText},
		"routing_decision.policy_version": {nil, secretText},
		"routing_decision.execution_mode": {nil, "later", true},
		"routing_decision.base_url":       {secretText, 1, "ftp://x"},
		"routing_decision.cache_eligible": {"yes", 1},
		"routing_decision.max_retries":    {-1, 51, "2", 0.5},
		"routing_decision.text":           {secretText},
		"sealed.text":                     {nil, secretText},
		"sealed.text.id":                  {nil, secretText},
		"sealed.text.body":                {nil, "", secretText, "abc", 1},
		"sealed.preferences":              {secretText, map[string]any{}},
		"sealed.more":                     {map[string]any{"id": strings.Repeat("b", 64), "body": "eA=="}},
		"you never clean":                 {1},
	} {
		for _, value := range values {
			m := good()
			at := m
			path := strings.Split(field, ".")
			for _, step := range path[:len(path)-1] {
				at = at[step].(map[string]any)
			}
			at[path[len(path)-1]] = value
			code, text := call(m)
			if want := strings.ReplaceAll(field, secretText, "malformed name"); code != "22023" || !strings.Contains(text, want) {
				t.Errorf("%s = %v: code %q, %s", field, value, code, text)
			}
			if strings.Contains(text, "never") {
				t.Errorf("%s = %v: the error quotes the value: %s", field, value, text)
			}
		}
	}
	for _, job := range []string{`[]`, `"you never clean"`, `null`, `7`} {
		if code, text := q.enqueueRaw(t, job, `{}`); code != "22023" || strings.Contains(text, "never") {
			t.Errorf("order %s: code %q, %s", job, code, text)
		}
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

// A row that cannot be decoded is returned with the field's name, beside the others.
func TestUnreadableRowsAreReturned(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	ids := q.enqueue(t, order(), order(), order(), order())
	exec(t, q.conn, `alter table criticizer.rewrite_jobs drop constraint rewrite_jobs_languages_are_tags,
		drop constraint rewrite_jobs_routing_is_readable, drop constraint rewrite_jobs_times_are_finite`)
	for i, change := range []string{
		`language_pair = '{"from": true, "to": "en"}'`, `routing_decision = routing_decision || '{"cache_eligible": "yes"}'`, `not_before_at = '-infinity'`,
	} {
		exec(t, q.conn, `update criticizer.rewrite_jobs set `+change+` where job_id = '`+ids[i]+`'`)
	}
	_, jobs := q.claim(t, rewrite.Async, 10)
	found := must(q.operator.Find(t.Context(), store.RewriteFilter{Limit: 10}))(t)
	if len(jobs) != 4 || len(found) != 4 {
		t.Fatalf("claimed %d, found %d jobs, want 4", len(jobs), len(found))
	}
	for i, want := range []string{"language_pair", "routing_decision", "not_before_at", ""} {
		if jobs[i].Unreadable != want || jobs[i].Fault() != want {
			t.Errorf("job %d: unreadable %q, fault %q, want %q", i, jobs[i].Unreadable, jobs[i].Fault(), want)
		}
	}
	must(json.Marshal(found))(t)
}

// The database evaluates a decision and the languages while the job is queued, so neither
// changes when or after it is claimed.
func TestDecisionOfClaimedJobIsFinal(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(t, order())
	const decide = `update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"model": "you never clean"}'`
	for statement, want := range map[string]string{
		decide: "23514",
		decide + `, status = 'processing', claimed_at = now(), claimed_by = 'w'`: "42501",
		claimed + decide + `, status = 'queued'`:                                 "42501",
		claimed + decide:                                                         "42501",
		claimed + `update criticizer.rewrite_jobs set language_pair = '{}'`:      "42501",
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
	must(q.Complete(t.Context(), c.Holder(), map[string]string{id: "rewrite:x"}))(t)
	if refused := refusal(t, q.conn, string(store.RoleRewrite), `update criticizer.rewrite_jobs set result_ref = 'rewrite:y'`); refused == nil || refused.Code != "42501" {
		t.Errorf("change of a result: %v", refused)
	}
	exec(t, q.conn, `update criticizer.rewrite_runs set started_at = now() - interval '3 hours'`)
	testkit.NoError(t, q.BeginRun(t.Context(), uuid.NewString(), rewrite.AsyncLane, 5))
	runs := must(q.operator.Runs(t.Context(), rewrite.AsyncLane, 10))(t)
	if len(runs) != 2 || runs[0].FinishedAt != nil || runs[1].FinishedAt == nil || runs[1].Succeeded != 1 {
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
		got := query[string](t, q.conn, `select status || ' ' || coalesce(position::text, '-') from criticizer.rewrite_job_states where job_id = '`+ids[i]+`'`)
		if got != want {
			t.Errorf("job %d is %q, want %q", i, got, want)
		}
	}
	exec(t, q.conn, `set role criticizer_backend; select last_error, attempt_count, max_attempts, not_before_at, position from criticizer.rewrite_job_states; reset role`)
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
		must(open[i].Exec(t.Context(), `set local lock_timeout = '2s'; set local role criticizer_backend`))(t)
	}
	for _, step := range []struct{ tx, text int }{{0, 1}, {1, 2}, {0, 2}, {1, 1}} {
		body := must(json.Marshal(order()))(t)
		texts := must(json.Marshal(sealed(strings.Repeat("x", step.text))))(t)
		must(open[step.tx].Exec(t.Context(), `select criticizer.enqueue_rewrite($1, $2)`, body, texts))(t)
	}
	for _, tx := range open {
		testkit.NoError(t, tx.Commit(t.Context()))
	}
	q.enqueue(t, order()) // the text is stored: no copy more
	_, jobs := q.claim(t, rewrite.Async, 10)
	if stored := query[int](t, q.conn, `select count(*) from rewrite.artifacts`); len(jobs) != 5 || stored != 5 {
		t.Errorf("%d jobs, %d texts, want 5 and 5", len(jobs), stored)
	}
	q.enqueue(t, order())
	if stored := query[int](t, q.conn, `select count(*) from rewrite.artifacts`); stored != 5 {
		t.Errorf("%d texts after another job with a stored text, want 5", stored)
	}
}

// Files with the same new requests in opposite orders do not deadlock.
func TestEnqueueInOppositeOrders(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for range 3 {
		var files [2][]rewrite.Order
		texts := make([]rewrite.Sealed, 20)
		for i := range texts {
			texts[i] = sealed("text")
			one := order()
			files[0] = append(files[0], one)
			files[1] = append(files[1], order(func(o *rewrite.Order) { o.RequestID = one.RequestID }))
		}
		slices.Reverse(files[1])
		var calls errgroup.Group
		for _, orders := range files {
			calls.Go(func() error {
				receipts, err := q.backend.Enqueue(t.Context(), orders, texts)
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
	must(q.Complete(t.Context(), c.Holder(), map[string]string{id: "rewrite:" + sealed("text").Text.ID}))(t)
	got, err := q.backend.Result(t.Context(), id)
	if testkit.NoError(t, err); string(got.Body) != string(sealed("text").Text.Body) {
		t.Errorf("the result is %q", got.Body)
	}
	found := query[string](t, q.conn, `select string_agg(detail ->> 'found', ' ' order by id) from criticizer.audit_log
		where action = 'artifact.read' and object = 'rewrite-job:`+id+`' and actor = session_user`)
	if found != "false true" {
		t.Errorf("recorded reads: %q", found)
	}
}
