package store_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
)

// goodRows are valid rows of the rewrite queue.
const goodRows = `
insert into complaint_rewrite.requests values ('00000000-0000-0000-0000-000000000001', 'message:x');
insert into complaint_rewrite.batches (batch_id, routing_decision, language_pair, requests, tokens, run_id)
values ('00000000-0000-0000-0000-000000000002', '{}', '{}', 1, 1, gen_random_uuid());
insert into complaint_rewrite.runs (run_id, worker, max_jobs_per_run) values (gen_random_uuid(), 'rewrite_async', 25);
insert into complaint_rewrite.messages (id, body) values (repeat('a', 64), 'x');
insert into complaint_rewrite.results (id, body) values (repeat('a', 64), 'x');
` + oneJob

const oneJob = `
insert into complaint_rewrite.jobs (job_id, rewrite_request_id, surface, rewrite_strength, language_pair, recipient_user_id,
                                     recipient_snapshot_id, recipient_preference_snapshot_id, routing_decision)
select gen_random_uuid(), r, 'other', 'light_touch', '{"from": "en", "to": "de"}', r, r, r, ` + decision + `
from (values ('00000000-0000-0000-0000-000000000001'::uuid)) as v (r)`

// decision is a valid decision, as a literal of SQL.
const decision = `'{"provider": "openai", "adapter_kind": "openai_chat", "model": "m", "prompt_version": "v1", "policy_version": "v1", "execution_mode": "async"}'::jsonb`

// claimed claims the job, so that later statuses can be reached.
const claimed = `update complaint_rewrite.jobs set status = 'processing', claimed_at = now(), claimed_by = 'w';`

// violations are changes that a constraint refuses, by its name.
var violations = map[string][]string{
	"complaint_rewrite.requests_text_present": {`update complaint_rewrite.requests set text_ref = 'you never clean'`},

	"complaint_rewrite.jobs_unit_unique":   {oneJob}, // (rewrite 4)
	"complaint_rewrite.jobs_of_request":    {`update complaint_rewrite.jobs set rewrite_request_id = job_id`},
	"complaint_rewrite.jobs_of_batch":      {`update complaint_rewrite.jobs set batch_id = job_id`},
	"complaint_rewrite.jobs_task_known":    {`update complaint_rewrite.jobs set task = 'review'`},
	"complaint_rewrite.jobs_surface_known": {`update complaint_rewrite.jobs set surface = 'mail'`},
	"complaint_rewrite.jobs_strength_known": {
		`update complaint_rewrite.jobs set rewrite_strength = 'total'`,
	},
	"complaint_rewrite.jobs_status_known":     {`alter table complaint_rewrite.jobs disable trigger user; update complaint_rewrite.jobs set status = 'running'`},
	"complaint_rewrite.jobs_attempts_counted": {`update complaint_rewrite.jobs set attempt_count = -1`, `update complaint_rewrite.jobs set max_attempts = 0`},
	"complaint_rewrite.jobs_processing_is_claimed": {
		`update complaint_rewrite.jobs set status = 'processing', claimed_by = 'w'`,
		`update complaint_rewrite.jobs set status = 'processing', claimed_at = now()`,
	},
	"complaint_rewrite.jobs_submitted_has_batch":  {claimed + `update complaint_rewrite.jobs set status = 'batch_submitted'`},
	"complaint_rewrite.jobs_completed_has_result": {claimed + `update complaint_rewrite.jobs set status = 'completed'`},
	"complaint_rewrite.jobs_failed_has_error":     {claimed + `update complaint_rewrite.jobs set status = 'failed'`}, // (rewrite 8.2)
	"complaint_rewrite.jobs_routing_is_short":     {`update complaint_rewrite.jobs set routing_decision = routing_decision || jsonb_build_object('text', repeat('x', 1000))`},
	"complaint_rewrite.jobs_mode_known": {
		`update complaint_rewrite.jobs set routing_decision = '{}'`,
		`update complaint_rewrite.jobs set routing_decision = routing_decision || '{"execution_mode": "later"}'`,
	},
	"complaint_rewrite.jobs_attempts_limited": {`update complaint_rewrite.jobs set max_attempts = 51`},
	"complaint_rewrite.jobs_not_before_is_readable": {
		`update complaint_rewrite.jobs set not_before_at = '-infinity'`,
		`update complaint_rewrite.jobs set not_before_at = '0044-03-15 BC'`,
		`update complaint_rewrite.jobs set not_before_at = '10000-01-01'`,
	},

	// Changes that skip a status or leave a final one (rewrite 3).
	"complaint_rewrite.transitions_legal": {
		`update complaint_rewrite.jobs set status = 'completed', result_ref = 'rewrite:x'`,
		claimed + `update complaint_rewrite.jobs set status = 'canceled'; update complaint_rewrite.jobs set status = 'queued'`,
		`update complaint_rewrite.jobs set rewrite_request_id = rewrite_request_id, status = 'failed', last_error = 'x', last_error_at = now()`,
	},

	"complaint_rewrite.batches_state_known":      {`update complaint_rewrite.batches set state = 'lost'`},
	"complaint_rewrite.batches_hold_jobs":        {`update complaint_rewrite.batches set requests = 0`},
	"complaint_rewrite.batches_submitted_has_id": {`update complaint_rewrite.batches set state = 'submitted'`},
	"complaint_rewrite.batches_ended_iff_final":  {`update complaint_rewrite.batches set state = 'abandoned'`, `update complaint_rewrite.batches set ended_at = now()`},
	"complaint_rewrite.batches_lease_has_end":    {`update complaint_rewrite.batches set leased_until = now()`},

	"complaint_rewrite.runs_worker_known":        {`update complaint_rewrite.runs set worker = 'somebody'`},
	"complaint_rewrite.runs_are_limited":         {`update complaint_rewrite.runs set max_jobs_per_run = 0`}, // (rewrite 12)
	"complaint_rewrite.runs_event_known":         {`update complaint_rewrite.runs set finished_at = now(), event = 'skipped'`},
	"complaint_rewrite.runs_skipped_did_nothing": {`update complaint_rewrite.runs set event = 'rewrite_async skipped: no pending items'`},

	"complaint_rewrite.messages_body_present":     {`update complaint_rewrite.messages set body = ''`},
	"complaint_rewrite.messages_id_is_hash":       {`update complaint_rewrite.messages set id = 'you never clean'`},
	"complaint_rewrite.messages_expire_in_7_days": {`update complaint_rewrite.messages set expires_at = stored_at + interval '169 hours'`, `update complaint_rewrite.messages set expires_at = stored_at`}, // (security 9.4.2)
	"complaint_rewrite.results_body_present":      {`update complaint_rewrite.results set body = ''`},
	"complaint_rewrite.results_id_is_hash":        {`update complaint_rewrite.results set id = 'you never clean'`},
	"complaint_rewrite.results_expire_in_7_days":  {`update complaint_rewrite.results set expires_at = stored_at + interval '169 hours'`, `update complaint_rewrite.results set expires_at = stored_at`},

	"complaint_rewrite.audit_log_says_what": {`insert into complaint_rewrite.audit_log (action, object) values ('', 'x')`},
}

func TestEveryConstraintRefuses(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows)
	for name, statements := range violations {
		for _, statement := range statements {
			refused := refusal(t, conn, "", statement)
			if refused == nil {
				t.Errorf("%s accepted: %s", name, statement)
			} else if got := refused.SchemaName + "." + refused.ConstraintName; got != name {
				t.Errorf("%s: %s rejected instead (%s)", name, got, refused.Message)
			}
		}
	}
}

func TestEveryConstraintIsTested(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	rows, err := conn.Query(t.Context(), `
		select 'complaint_rewrite.' || conname from pg_constraint
		where connamespace::regnamespace::text = 'complaint_rewrite' and conrelid <> 'complaint_rewrite.migrations'::regclass
		  and conname not like '%\_pkey' and contype <> 'n' order by 1`)
	testkit.NoError(t, err)
	have := must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	if tested := slices.Sorted(maps.Keys(violations)); !slices.Equal(have, tested) {
		t.Errorf("the schema has\n%q\ntested are\n%q", have, tested)
	}
}

// Backends enqueue and read states, frontends read states, and only the worker executes jobs
// (rewrite 5, 11, 12).
func TestRewriteRoles(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows)
	for _, tt := range []struct{ role, statement string }{
		{"complaint_rewrite_worker", `select body from complaint_rewrite.results`},
		{"complaint_rewrite_worker", `insert into complaint_rewrite.messages (id, body) values (repeat('b', 64), 'x')`},
		{"complaint_rewrite_worker", `delete from complaint_rewrite.messages`}, // not expired
		{"complaint_rewrite_worker", `insert into complaint_rewrite.transitions (job_id, to_status, attempt_count) values (gen_random_uuid(), 'queued', 0)`},
		{"complaint_rewrite_worker", `select complaint_rewrite.enqueue('{}')`},
		{"complaint_rewrite_backend", `select body from complaint_rewrite.messages`},
		{"complaint_rewrite_backend", `select status from complaint_rewrite.jobs`},
		{"complaint_rewrite_frontend", `select complaint_rewrite.result(gen_random_uuid())`},
		{"complaint_rewrite_frontend", `select complaint_rewrite.enqueue('{}')`},
		{"complaint_rewrite_operator", `select body from complaint_rewrite.messages`},
		{"complaint_rewrite_operator", `select body from complaint_rewrite.results`},
		{"complaint_rewrite_operator", `delete from complaint_rewrite.audit_log`},
		{"", `delete from complaint_rewrite.transitions`},
		{"", `update complaint_rewrite.audit_log set action = 'x'`},
	} {
		if refused := refusal(t, conn, tt.role, tt.statement); refused == nil || refused.Code != "42501" {
			t.Errorf("%s: %s: %v, want code 42501", tt.role, tt.statement, refused)
		}
	}
	for role, statement := range map[string]string{
		"complaint_rewrite_frontend": `select status, position from complaint_rewrite.job_states`,
		"complaint_rewrite_backend":  `select complaint_rewrite.result(gen_random_uuid())`,
		"complaint_rewrite_operator": `select id, expires_at from complaint_rewrite.results`,
		"complaint_rewrite_worker":   `select body from complaint_rewrite.messages`,
	} {
		if refused := refusal(t, conn, role, statement); refused != nil {
			t.Errorf("%s: %s: %v", role, statement, refused)
		}
	}
}

// A sequence that is behind its rows, as after a careless restore, refuses no write: a result that
// was paid for is stored.
func TestSequenceBehindItsRows(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	if keys := query[int](t, q.conn, `select count(*)::int from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
		where i.indisunique and (a.attidentity <> '' or a.atthasdef and pg_get_serial_sequence(i.indrelid::regclass::text, a.attname) is not null)
		and i.indrelid::regclass::text like 'complaint_rewrite.%'`); keys != 0 {
		t.Errorf("%d generated columns are unique", keys)
	}
}
