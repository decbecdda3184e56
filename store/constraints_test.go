package store_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store/storetest"
)

// Rows that every constraint accepts; each case breaks one constraint.
const goodRows = `
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k', 1, 1, 's', 'r');
insert into criticizer.recipients values (1, 1, 0, 'alice', 'a@corp.test', 'author');
insert into criticizer.deliveries (changelist_id, review_version, recipient) values (1, 1, 'a@corp.test');
insert into criticizer.delivery_attempts (delivery_id, attempt) select id, 1 from criticizer.deliveries;
insert into criticizer.notices (changelist_id, review_version) values (1, 1);
insert into criticizer.dead_letters (workflow_id, run_id, changelist_id, review_version, stage, error_class, payload, first_failure_at, last_failure_at)
values ('k', 'r', 1, 1, 'llm', 'UNKNOWN',
        '{"error_class":"","last_stack":"","sanitized_context":{},"first_failure_at":"","last_failure_at":"","stage":""}', now(), now());
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason) select id, 'r2', '', '' from criticizer.dead_letters;
insert into criticizer.replay_requests (dead_letter_id, who, reason, full_restart) select id, 'olga', 'T-1', false from criticizer.dead_letters;
insert into criticizer.pages (dead_letter_id, reason) select id, 'bug' from criticizer.dead_letters;
insert into criticizer.findings (token, changelist_id, review_version, fingerprint, place, path, category, severity)
values (repeat('a', 13), 1, 1, 'f1', 'p', '//depot/a.go', 'security', 'high'), (repeat('b', 13), 1, 1, 'f2', 'p', '//depot/b.go', 'security', 'high');
insert into criticizer.opinions (token, said_by, opinion, said_at) values (repeat('a', 13), 'ann', 'wrong', now());
insert into criticizer.outages (stage, worker, since, half_open, error_class, reason) values ('llm', 'w', now(), false, 'AUTH_DENIED', '');
insert into raw.artifacts (id, body, ttl) values (repeat('a', 64), 'x', '1 hour');
insert into redacted.artifacts (id, body, ttl) values (repeat('a', 64), 'x', '1 hour');
insert into report.artifacts (id, body, ttl) values (repeat('a', 64), 'x', '1 hour');
insert into answer.artifacts (id, body, ttl) values (repeat('a', 64), 'x', '1 hour');
`

// violations maps each constraint to statements it must refuse.
var violations = map[string][]string{
	"criticizer.deliveries_channel_names_recipient": {`update criticizer.deliveries set channel = 'webhook'`, `update criticizer.deliveries set recipient = 'webhook'`},

	"criticizer.findings_once_per_version":     {`update criticizer.findings set fingerprint = 'f'`},
	"criticizer.findings_token_is_ours":        {`update criticizer.findings set token = 'B' || repeat('b', 12) where fingerprint = 'f2'`},
	"criticizer.findings_accepted_by_somebody": {`update criticizer.findings set accepted_at = now()`},
	"criticizer.opinions_known":                {`update criticizer.opinions set opinion = 'so-so'`},
	"criticizer.opinions_on_finding":           {`insert into criticizer.opinions (token, said_by, opinion, said_at) values (repeat('c', 13), 'ann', 'wrong', now())`},

	"criticizer.jobs_key_unique":          {`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k', 2, 1, '', '')`},
	"criticizer.jobs_version_unique":      {`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('l', 1, 1, '', '')`},
	"criticizer.jobs_key_present":         {`update criticizer.jobs set idempotency_key = ''`},
	"criticizer.jobs_report_present":      {`update criticizer.jobs set report = ''`},
	"criticizer.jobs_changelist_positive": {`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('l', 0, 1, '', '')`},
	"criticizer.jobs_version_positive":    {`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('l', 1, 0, '', '')`},
	"criticizer.jobs_state_known":         {`update criticizer.jobs set state = 'done'`, `update criticizer.jobs set state = 'dead_lettered'`},
	"criticizer.jobs_outcome_known":       {`update criticizer.jobs set state = 'succeeded', finished_at = now(), outcome = 'superseded'`},
	"criticizer.jobs_outcome_iff_succeeded": {
		`update criticizer.jobs set state = 'succeeded', finished_at = now()`,
		`update criticizer.jobs set outcome = 'clean'`,
	},
	"criticizer.jobs_finished_iff_final": {
		`update criticizer.jobs set state = 'canceled'`,
		`update criticizer.jobs set finished_at = now()`,
	},
	"criticizer.jobs_findings_fit_outcome": {
		`update criticizer.jobs set findings = -1`,
		`update criticizer.jobs set state = 'succeeded', finished_at = now(), outcome = 'clean', findings = 1`,
		`update criticizer.jobs set state = 'succeeded', finished_at = now(), outcome = 'findings'`,
	},

	"criticizer.recipients_position_unique": {`insert into criticizer.recipients values (1, 1, 0, 'bob', 'b@corp.test', 'owner')`},
	"criticizer.recipients_of_job":          {`insert into criticizer.recipients values (1, 2, 0, 'bob', 'b@corp.test', 'owner')`},
	"criticizer.recipients_role_known":      {`update criticizer.recipients set role = 'boss'`},
	"criticizer.recipients_address_iff_resolved": {
		`update criticizer.recipients set address = ''`,
		`update criticizer.recipients set role = 'unresolved'`,
	},

	"criticizer.delivery_attempts_numbered":            {`insert into criticizer.delivery_attempts (delivery_id, attempt) select id, 1 from criticizer.deliveries`},
	"criticizer.delivery_attempts_of_delivery":         {`insert into criticizer.delivery_attempts (delivery_id, attempt) values (-1, 1)`},
	"criticizer.delivery_attempts_ended_with_result":   {`update criticizer.delivery_attempts set ended_at = now()`, `update criticizer.delivery_attempts set result = 'accepted'`},
	"criticizer.delivery_attempts_accepted_has_result": {`update criticizer.delivery_attempts set accepted_at = now()`},
	"criticizer.notices_once":                          {`insert into criticizer.notices (changelist_id, review_version) values (1, 1)`},
	"criticizer.notices_of_job":                        {`insert into criticizer.notices (changelist_id, review_version) values (1, 2)`},
	"criticizer.notices_notified_has_id":               {`update criticizer.notices set notified_at = now()`, `update criticizer.notices set notification_id = 'm'`},
	"criticizer.deliveries_intent_unique":              {`insert into criticizer.deliveries (changelist_id, review_version, recipient) values (1, 1, 'a@corp.test')`},
	"criticizer.deliveries_of_job":                     {`insert into criticizer.deliveries (changelist_id, review_version, recipient) values (1, 2, 'a@corp.test')`},
	"criticizer.deliveries_recipient_lower":            {`update criticizer.deliveries set recipient = 'A@corp.test'`},
	"criticizer.deliveries_status_known":               {`update criticizer.deliveries set status = 'done'`},
	"criticizer.deliveries_notified_iff_sent": { // sent only with a time, a time only when sent (notification 6.4.3)
		`update criticizer.deliveries set status = 'sent', notification_id = 'm'`,
		`update criticizer.deliveries set notified_at = now(), notification_id = 'm'`,
	},
	"criticizer.deliveries_notified_has_id":         {`update criticizer.deliveries set status = 'sent', notified_at = now()`},
	"criticizer.deliveries_notification_id_present": {`update criticizer.deliveries set notification_id = ''`},
	"criticizer.deliveries_failed_has_class":        {`update criticizer.deliveries set status = 'failed'`},
	"criticizer.deliveries_attempts_timed": {
		`update criticizer.deliveries set attempts = 1`,
		`update criticizer.deliveries set last_attempt_at = now()`,
		`update criticizer.deliveries set attempts = -1`,
	},
	"criticizer.deliveries_begun_is_open": {
		`update criticizer.deliveries set begun = true`,
		`update criticizer.deliveries set begun = true, attempts = 1, last_attempt_at = now(), status = 'sent', notification_id = 'm', notified_at = now()`,
	},
	"criticizer.deliveries_unproven_not_negative": {`update criticizer.deliveries set unproven = -1`},

	"criticizer.dead_letters_run_unique": {`
		insert into criticizer.dead_letters (workflow_id, run_id, changelist_id, review_version, stage, error_class, payload, first_failure_at, last_failure_at)
		select workflow_id, run_id, changelist_id, review_version, stage, error_class, payload, first_failure_at, last_failure_at from criticizer.dead_letters`},
	"criticizer.dead_letters_state_known": {`update criticizer.dead_letters set state = 'done'`},
	"criticizer.dead_letters_resolved_iff_dated": {
		`update criticizer.dead_letters set state = 'resolved'`,
		`update criticizer.dead_letters set resolved_at = now()`,
	},
	"criticizer.dead_letters_class_present":    {`update criticizer.dead_letters set error_class = ''`},
	"criticizer.dead_letters_stage_present":    {`update criticizer.dead_letters set stage = ''`},
	"criticizer.dead_letters_payload_complete": {`update criticizer.dead_letters set payload = payload - 'last_stack'`}, // (processing 8.4)

	"criticizer.replays_of_dead_letter":          {`update criticizer.replays set dead_letter_id = -1`},
	"criticizer.replays_run_unique":              {`insert into criticizer.replays (dead_letter_id, new_run_id, who, reason) select dead_letter_id, 'r2', '', '' from criticizer.replays`},
	"criticizer.replays_acknowledged_by_present": {`update criticizer.replays set acknowledged_at = now()`},
	"criticizer.replays_run_present":             {`update criticizer.replays set new_run_id = ''`},
	"criticizer.replays_of_request":              {`update criticizer.replays set request_id = -1`},

	"criticizer.replay_requests_of_dead_letter": {`update criticizer.replay_requests set dead_letter_id = -1`},
	"criticizer.replay_requests_say_who_why":    {`update criticizer.replay_requests set who = ''`, `update criticizer.replay_requests set reason = ''`},
	"criticizer.replay_requests_end_once":       {`update criticizer.replay_requests set new_run_id = 'r2', withdrawn_at = now()`},
	"criticizer.replay_requests_run_present":    {`update criticizer.replay_requests set new_run_id = ''`},

	"criticizer.catch_up_mark_is_no_older":  {`insert into criticizer.catch_up (server_id, since, mark) values ('p4', 2, 1)`},
	"criticizer.catch_up_since_is_a_number": {`insert into criticizer.catch_up (server_id, since, mark) values ('p4', -1, 1)`},

	"criticizer.outcomes_of_report": {`insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally)
		values (1, 1, 'r', 'clean', 0, false, 'c', '{}'), (1, 1, 'r', 'findings', 1, false, 'c', '{}')`},
	"criticizer.gaps_of_report": {`insert into criticizer.gaps (changelist_id, review_version, report, position, path, lines, why, class, context)
		values (1, 1, 'r', 1, 'a', '1-2', 'w', '', ''), (1, 1, 'r', 1, 'b', '1-2', 'w', '', '')`},
	"criticizer.outcomes_adopted_from_review": {`insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally, of_changelist)
		values (1, 1, 'r', 'clean', 0, false, 'c', '{}', 1)`},

	"criticizer.review_records_not_negative": {
		`insert into criticizer.review_records (changelist_id, review_version, tokens) values (1, 1, -1)`,
		`insert into criticizer.review_records (changelist_id, review_version, calls) values (1, 1, -1)`,
	},
	"criticizer.token_days_not_negative":    {`insert into criticizer.token_days (day, tokens) values (now(), -1)`},
	"criticizer.recipient_key_one_row_only": {`insert into criticizer.recipient_key default values`},
	"criticizer.recipient_key_one_row":      {`insert into criticizer.recipient_key (one_row) values (false)`},

	"criticizer.jobs_skipped_not_reviewed": {`update criticizer.jobs set skipped_by = 'skip.users'`},
	"criticizer.jobs_shelf_event_of_shelf": {`update criticizer.jobs set shelf_event = 'e'`, `update criticizer.jobs set shelved = true`},
	"criticizer.jobs_shelf_event_unique": {
		`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, shelved, shelf_event)
		 values ('s1', 8, 1, '', '', true, 'e'), ('s2', 8, 2, '', '', true, 'e')`,
	},
	"criticizer.contents_of_review": {
		`insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of) values (1, 1, false, '', 0), (1, 1, false, '', 0)`,
	},
	"criticizer.contents_of_job": {
		`insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of) values (99, 1, false, '', 0)`,
	},

	"criticizer.restores_backup_is_earlier":   {`select criticizer.restored(now() + interval '1 minute', 1)`},
	"criticizer.restores_changelist_positive": {`select criticizer.restored(now(), 0)`},

	"criticizer.outages_of_worker": {`insert into criticizer.outages select * from criticizer.outages`},

	"criticizer.watch_one_row_only": {`insert into criticizer.watch default values`},
	"criticizer.watch_one_row":      {`insert into criticizer.watch (one_row) values (false)`},

	"criticizer.pages_letter_unique":     {`insert into criticizer.pages (dead_letter_id, reason) select dead_letter_id, 'escalated' from criticizer.pages`},
	"criticizer.pages_of_dead_letter":    {`update criticizer.pages set dead_letter_id = -1`},
	"criticizer.pages_reason_known":      {`update criticizer.pages set reason = 'for fun'`},
	"criticizer.pages_attempts_positive": {`update criticizer.pages set attempts = -1`},

	"criticizer.allowlist_versions_say_who_why": {`insert into criticizer.allowlist_versions (who, reason, allowed, embargoed) values ('', 'T-1', '{//depot/...}', '{}')`},
	"criticizer.allowlist_versions_not_empty":   {`insert into criticizer.allowlist_versions (who, reason, allowed, embargoed) values ('olga', 'T-1', '{}', '{}')`},

	"criticizer.audit_log_says_what": {`insert into criticizer.audit_log (action, object) values ('', 'o')`},

	"raw.artifacts_body_present":      {`update raw.artifacts set body = ''`},
	"raw.artifacts_id_is_hash":        {`update raw.artifacts set id = 'diff of 4711'`},
	"redacted.artifacts_body_present": {`update redacted.artifacts set body = ''`},
	"redacted.artifacts_id_is_hash":   {`update redacted.artifacts set id = 'diff of 4711'`},
	"report.artifacts_body_present":   {`update report.artifacts set body = ''`},
	"report.artifacts_id_is_hash":     {`update report.artifacts set id = 'diff of 4711'`},
	"answer.artifacts_body_present":   {`update answer.artifacts set body = ''`},
	"answer.artifacts_id_is_hash":     {`update answer.artifacts set id = 'diff of 4711'`},
	"answer.artifacts_ttl_30_days":    {`update answer.artifacts set expires_at = stored_at + interval '721 hours'`, `update answer.artifacts set expires_at = stored_at`},
	"raw.artifacts_ttl_7_days":        {`update raw.artifacts set expires_at = stored_at + interval '169 hours'`, `update raw.artifacts set expires_at = stored_at`}, // (security 9.4.1)
	"redacted.artifacts_ttl_30_days":  {`update redacted.artifacts set expires_at = stored_at + interval '721 hours'`, `update redacted.artifacts set expires_at = stored_at`},
	"report.artifacts_ttl_30_days":    {`update report.artifacts set expires_at = stored_at + interval '721 hours'`, `update report.artifacts set expires_at = stored_at`},
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
		select connamespace::regnamespace || '.' || conname from pg_constraint
		where connamespace::regnamespace::text in ('criticizer', 'raw', 'redacted', 'report', 'answer')
		  and conrelid <> 'criticizer.migrations'::regclass and conname not like '%\_pkey' and contype <> 'n'
		union
		select relnamespace::regnamespace || '.' || relname
		from pg_index join pg_class on oid = indexrelid
		where indisunique and relnamespace::regnamespace::text in ('criticizer', 'raw', 'redacted', 'report', 'answer')
		  and not exists (select from pg_constraint where conindid = indexrelid)
		order by 1`)
	testkit.NoError(t, err)
	have := must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	if tested := slices.Sorted(maps.Keys(violations)); !slices.Equal(have, tested) {
		t.Errorf("the schema has\n%q\ntested are\n%q", have, tested)
	}
}

// otherRows are rows of the tables that goodRows leaves empty.
const otherRows = `
insert into criticizer.catch_up (server_id, since, mark) values ('p4', 1, 1);
insert into criticizer.review_records (changelist_id, review_version) values (1, 1);
insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally) values (1, 1, 'r', 'clean', 0, false, 'c', '{}');
insert into criticizer.gaps (changelist_id, review_version, report, position, path, lines, why, class, context) values (1, 1, 'r', 1, 'a', '1-2', 'w', '', '');
insert into criticizer.token_days (day, tokens) values (now(), 1);
insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of) values (1, 1, false, '', 0);
insert into criticizer.allowlist_versions (who, reason, allowed, embargoed) values ('olga', 'T-1', '{//depot/...}', '{}');
insert into criticizer.audit_log (action, object) values ('b', 'c');
insert into criticizer.restores (backup_at, newest_changelist) values (now(), 1);
`

// Each column refuses null and each primary key a second row with the same key, except
// those in testdata/columns.txt. The columns come from the catalogue: a new table needs a
// row above, and a column that may be null is a line of the file.
func TestEveryColumnAndKeyRefuses(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows+";"+otherRows)
	exec(t, conn, `set session_replication_role = replica`) // some triggers refuse every change, others fill in values
	rows, err := conn.Query(t.Context(), `
		select relnamespace::regnamespace || '.' || quote_ident(relname) as table,
		       array_agg(quote_ident(attname) order by attnum) filter (where attgenerated = '') as columns,
		       coalesce((select conname from pg_constraint where conrelid = c.oid and contype = 'p'), '')::text as key
		from pg_class c join pg_attribute a on attrelid = c.oid and attnum > 0 and not attisdropped
		where relkind in ('r', 'p') and relnamespace::regnamespace::text in ('criticizer', 'raw', 'redacted', 'report', 'answer')
		  and c.oid <> 'criticizer.migrations'::regclass
		group by c.oid order by 1`)
	testkit.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Name    string
		Columns []string
		Key     string
	}])
	testkit.NoError(t, err)
	var accepted []string
	for _, table := range tables {
		if !query[bool](t, conn, `select exists (select from `+table.Name+`)`) {
			t.Errorf("no row of %s", table.Name)
		}
		columns := strings.Join(table.Columns, ", ")
		insert := `insert into ` + table.Name + ` (` + columns + `) overriding system value select `
		if refused := refusal(t, conn, "", insert+columns+` from `+table.Name); refused == nil || refused.Code != "23505" || refused.ConstraintName != table.Key {
			accepted = append(accepted, table.Name+" may have a row twice")
		}
		for i, column := range table.Columns {
			without := slices.Clone(table.Columns)
			without[i] = "null"
			refused := refusal(t, conn, "", insert+strings.Join(without, ", ")+` from `+table.Name)
			if refused == nil || refused.Code != "23502" || refused.ColumnName != strings.Trim(column, `"`) {
				accepted = append(accepted, table.Name+"."+column+" may be null")
			}
		}
	}
	wantGolden(t, "columns.txt", accepted)
}

func TestAuditLogIsAppendOnly(t *testing.T) { // even for its owner
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, `insert into criticizer.audit_log (action, object) values ('b', 'c')`)
	for _, statement := range []string{
		`update criticizer.audit_log set claimed = 'nobody'`,
		`delete from criticizer.audit_log`,
		`truncate criticizer.audit_log`,
	} {
		if refused := refusal(t, conn, "", statement); refused == nil || refused.Code != "42501" {
			t.Errorf("%s: %v", statement, refused)
		}
	}
}
