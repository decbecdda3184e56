package activities_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
)

// Rows of changelists 1 to 3 and of five namespaces. Changelist 1 succeeded longer than
// the lifetime of reviews ago; the metadata of 1 and 2 is older than 30 days, the metadata of 3 is
// new. Artifact a expired four hours ago, b has not expired.
const retained = `
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, state, outcome, created_at, finished_at)
select 'k' || n, n, 1, 'p4', 'r', 'succeeded', 'clean', now() - age, now() - age
from (values (1, interval '100 days'), (2, interval '29 days'), (3, interval '1 day')) v (n, age);
insert into criticizer.recipients (changelist_id, review_version, position, user_name, address, role, saved_at)
select changelist_id, 1, 0, 'ann', 'ann@corp.test', 'author', now() - interval '31 days' from criticizer.jobs;
update criticizer.recipients set saved_at = now() where changelist_id = 3;
insert into criticizer.deliveries (changelist_id, review_version, recipient, status, attempts, created_at, last_attempt_at, notified_at, notification_id)
select changelist_id, 1, 'ann@corp.test', 'sent', 1, saved_at, saved_at, saved_at, 'm' from criticizer.recipients;
insert into criticizer.findings (token, changelist_id, review_version, fingerprint, place, path, category, severity, reported_at)
select repeat('abc', 4) || case changelist_id when 1 then 'a' when 2 then 'b' else 'c' end, changelist_id, 1, 'f', 'p', '//depot/a.go', 'security', 'high', saved_at
from criticizer.recipients;
`

// eachNamespace is retained for one namespace.
const eachNamespace = `
insert into NS.artifacts (id, body) values (repeat('a', 64), 'x'), (repeat('b', 64), 'x');
update NS.artifacts set stored_at = now() - interval '5 hours', expires_at = now() - interval '4 hours' where id like 'a%';
`

// left lists what is stored, and how many deletions were audited.
const left = `
select concat_ws(' ',
    (select string_agg(changelist_id::text, ',' order by changelist_id) from criticizer.jobs),
    (select string_agg(changelist_id::text, ',' order by changelist_id) from criticizer.recipients),
    (select string_agg(changelist_id || regexp_replace(recipient, ':.*', ''), ',' order by changelist_id) from criticizer.deliveries),
    (select string_agg(changelist_id || path, ',' order by changelist_id) from criticizer.findings),
    (select string_agg(ns || left(id, 1), ',' order by ns, id) from (
        select 'raw' as ns, id from raw.artifacts union all select 'redacted', id from redacted.artifacts
        union all select 'report', id from report.artifacts union all select 'answer', id from answer.artifacts) a),
    (select count(*) from criticizer.audit_log where action = 'artifact.expire'))`

const (
	metadataLeft = `1,2,3 3 2forgotten,3ann@corp.test 2,3//depot/a.go `
	allDeleted   = metadataLeft + `answerb,rawb,redactedb,reportb 4`
	rawLeft      = metadataLeft + `answerb,rawa,rawb,redactedb,reportb 3`
)

// In every schema expired data is deleted and nothing else, a security event is logged for
// what is left, and the figure of the alert CriticizerRetentionLags exceeds its limit as long
// as something is (security 9.4.1, 9.4.5).
func TestEnforceRetention(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		obstacle     string
		artifacts    int // deleted
		late         int // namespaces whose lag exceeds the limit of the alert, before the run
		overdue      int // and after it
		fails, alert bool
		left         string
	}{
		"all in order": {"", 4, 4, 0, false, false, allDeleted},
		"something was left": {`create function public.keep() returns trigger language plpgsql as 'begin return null; end';
			create trigger keep before delete on raw.artifacts for each row execute function public.keep()`, 3, 4, 1, false, true, rawLeft},
		"one namespace stuck keeps no other": {`revoke delete on raw.artifacts from criticizer_retention;
			update raw.artifacts set expires_at = expires_at + interval '2 hours' where id like 'a%'`, 3, 3, 0, true, false, rawLeft},
		"verified although it is stuck": {`revoke delete on raw.artifacts from criticizer_retention`, 3, 4, 1, true, true, rawLeft},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := storetest.New(t)
			conn := d.Conn(t)
			seed := retained
			for _, ns := range []string{"raw", "redacted", "report", "answer"} {
				seed += strings.ReplaceAll(eachNamespace, "NS", ns)
			}
			if _, err := conn.Exec(t.Context(), seed+tt.obstacle); err != nil {
				t.Fatal(err)
			}
			lagging := func() (namespaces int) {
				t.Helper()
				figures, err := d.Open(t, "criticizer_bookkeeping").Figures(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range figures {
					if f.Name == "criticizer_retention_lag_seconds" && f.Value > 10800 {
						namespaces++
					}
				}
				return namespaces
			}
			if n := lagging(); n != tt.late {
				t.Errorf("before the run %d namespaces lag, want %d", n, tt.late)
			}
			var log bytes.Buffer
			job := activities.Retention{
				Log:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
				Stored: d.Open(t, "criticizer_retention"), JobsTTL: 721 * time.Hour,
			}
			got, err := job.EnforceRetention(t.Context())
			want := activities.RetentionResult{Artifacts: tt.artifacts, Recipients: 2, Addresses: 2, Paths: 2, Reviews: 1, Overdue: tt.overdue}
			if got != want || (err != nil) != tt.fails {
				t.Errorf("result = %+v, %v; want %+v", got, err, want)
			}
			if alerted := strings.Contains(log.String(), "outlived their TTL"); alerted != tt.alert {
				t.Errorf("alert = %t:\n%s", alerted, &log)
			}
			if n := lagging(); n != tt.overdue {
				t.Errorf("after the run %d namespaces lag, want %d", n, tt.overdue)
			}
			var rows string
			if err := conn.QueryRow(t.Context(), left).Scan(&rows); err != nil || rows != tt.left {
				t.Errorf("left are\n%s, %v, want\n%s", rows, err, tt.left)
			}
			for _, cl := range []review.Changelist{1, 2} { // neither is reviewed or mailed again
				o, err := d.Open(t, "criticizer_bookkeeping").OpenJob(t.Context(), review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: "k" + cl.String()}, "r2")
				if err != nil || o.Decision != review.DecisionDuplicate {
					t.Errorf("a second review of %d is decided as %s, %v", cl, o.Decision, err)
				}
			}
			sent, err := d.Open(t, "criticizer_notify").PrepareDeliveries(t.Context(), 2, 1, []string{"Ann@corp.test"})
			if err != nil || len(sent) != 1 || sent[0].Status != review.DeliverySent {
				t.Errorf("rows of a forgotten recipient: %+v, %v", sent, err)
			}
		})
	}
}

// Without a lifetime, reviews are kept forever.
func TestReviewsAreKeptWithoutALifetime(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	if _, err := d.Conn(t).Exec(t.Context(), retained); err != nil {
		t.Fatal(err)
	}
	job := activities.Retention{Log: slog.New(slog.DiscardHandler), Stored: d.Open(t, "criticizer_retention")}
	got, err := job.EnforceRetention(t.Context())
	if err != nil || got.Reviews != 0 || got.Paths != 2 {
		t.Errorf("result = %+v, %v", got, err)
	}
}
