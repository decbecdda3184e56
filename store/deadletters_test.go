package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func letterOf(class failure.Class) failure.DeadLetter {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return failure.DeadLetter{
		ErrorClass: class, Stage: "llm", LastStack: "review changelist 4711: no", Attempts: 5,
		SanitizedContext: map[string]string{"upstream": "503"}, FirstFailureAt: at, LastFailureAt: at.Add(time.Minute),
	}
}

func record(t *testing.T, db *store.DB, runID string, letter failure.DeadLetter) (escalated bool) {
	t.Helper()
	return must(db.RecordDeadLetter(t.Context(), v1, runID, letter))(t)
}

func die(t *testing.T, db *store.DB, runID string, class failure.Class) {
	t.Helper()
	record(t, db, runID, letterOf(class))
	wantState(t, db, v1, review.JobRetryableFailed)
}

func replay(t *testing.T, db *store.DB, dead, fresh string) review.Job {
	t.Helper()
	return must(db.BeginReplay(t.Context(), v1, review.Replay{DeadRunID: dead, NewRunID: fresh, Identity: "olga", Reason: "TICKET-1"}))(t)
}

func letterState(t *testing.T, conn *pgx.Conn, runID string) string {
	t.Helper()
	return query[string](t, conn, `select state from criticizer.dead_letters where run_id = $1`, runID)
}

func TestRecordDeadLetterKeepsWhatTriageNeeds(t *testing.T) { // (processing 8.4)
	t.Parallel()
	db, d := bookkeeping(t)
	conn := d.Conn(t)
	open(t, db, v1, "run1")
	letter := letterOf(failure.UpstreamUnavailable)
	letter.LastStack += "\x00" // jsonb cannot hold it
	letter.SanitizedContext["odd\x00"] = "\xff\x00"
	record(t, db, "run1", letter)
	record(t, db, "run1", letter) // a retry of the activity
	wantState(t, db, v1, review.JobRetryableFailed)
	got := query[string](t, conn, `
		select concat_ws(' ', stage, error_class, state, escalated, payload->'sanitized_context'->>'upstream',
		                 last_failure_at - first_failure_at)
		from criticizer.dead_letters`)
	if want := "llm UPSTREAM_UNAVAILABLE open f 503 00:01:00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALateRetryDoesNotKillTheReplay(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	open(t, db, v1, "run1")
	die(t, db, "run1", failure.Unknown)
	replay(t, db, "run1", "run2")
	record(t, db, "run1", letterOf(failure.Unknown))
	wantState(t, db, v1, review.JobInProgress)
}

func TestReplayThatSucceedsResolvesTheDeadLetter(t *testing.T) { // (processing 8.5)
	t.Parallel()
	db, d := bookkeeping(t)
	conn := d.Conn(t)
	open(t, db, v1, "run1")
	die(t, db, "run1", failure.AuthDenied)
	for range 2 { // the activity is retried
		if job := replay(t, db, "run1", "run2"); job.State != review.JobInProgress || job.RunID != "run2" {
			t.Fatalf("replay begins with %+v", job)
		}
	}
	if got := letterState(t, conn, "run1"); got != "replaying" {
		t.Errorf("dead letter is %s, want replaying", got)
	}
	finish(t, db, v1)
	if got := letterState(t, conn, "run1"); got != "resolved" {
		t.Errorf("dead letter is %s, want resolved", got)
	}
	traces := query[string](t, conn, `select string_agg(concat_ws(' ', new_run_id, who, reason, explained), ';') from criticizer.replays`)
	if traces != "run2 olga TICKET-1 f" { // no request was recorded before the reset
		t.Errorf("replays hold %q", traces)
	}
	audited := query[string](t, conn, `select string_agg(claimed || ' ' || action || ' ' || object, ';') from criticizer.audit_log`)
	if audited != "olga replay workflow:"+v1.Key {
		t.Errorf("audit log holds %q", audited)
	}
}

func TestReplayThatFailsAgain(t *testing.T) { // re-queued, and escalated if of the same class (processing 8.5)
	t.Parallel()
	for _, tc := range []struct {
		name          string
		first, second failure.Class
		want          bool
	}{
		{"with the same non-retryable class is escalated", failure.SchemaInvalid, failure.SchemaInvalid, true},
		{"with another class is not", failure.SchemaInvalid, failure.AuthDenied, false},
		{"with the same retryable class is not", failure.RateLimited, failure.RateLimited, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			db, d := bookkeeping(t)
			conn := d.Conn(t)
			open(t, db, v1, "run1")
			die(t, db, "run1", tc.first)
			replay(t, db, "run1", "run2")
			for range 2 { // the activity is retried
				if got := record(t, db, "run2", letterOf(tc.second)); got != tc.want {
					t.Errorf("the workflow gets escalated %v, want %v", got, tc.want)
				}
			}
			if got := letterState(t, conn, "run1") + " " + letterState(t, conn, "run2"); got != "failed_again open" {
				t.Errorf("dead letters are %s", got)
			}
			if got := query[bool](t, conn, `select escalated from criticizer.dead_letters where run_id = 'run2'`); got != tc.want {
				t.Errorf("escalated is %v, want %v", got, tc.want)
			}
		})
	}
}

// A reset to any event adopts the job and replays the letters that an operator has to act
// on, whichever run it copies; it records the person and the reason.
func TestBeginReplayOfAnyRun(t *testing.T) {
	t.Parallel()
	v2 := review.Request{Changelist: v1.Changelist, Version: 2, ServerID: "p4", Key: "the second review"}
	for name, tt := range map[string]struct {
		before  func(*testing.T, *store.DB)
		former  string
		state   review.JobState
		letters string // state and escalation if the replay fails again
	}{
		"of a running review":                           {func(*testing.T, *store.DB) {}, "run1", review.JobInProgress, ""},
		"of a dead one, before the letter was recorded": {func(t *testing.T, db *store.DB) { die(t, db, "run1", failure.AuthDenied) }, "", review.JobInProgress, "run1 replaying"},
		"of a run that was replayed": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.AuthDenied)
			replay(t, db, "run1", "run2")
			die(t, db, "run2", failure.AuthDenied)
		}, "run1", review.JobInProgress, "run1 replaying, run2 replaying"},
		"of a canceled one": {func(t *testing.T, db *store.DB) { testkit.NoError(t, db.CancelJob(t.Context(), v1.Key)) }, "run1", review.JobInProgress, ""},
		"of one that has succeeded": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.AuthDenied)
			replay(t, db, "run1", "run2")
			finish(t, db, v1)
		}, "run1", review.JobSucceeded, "run1 resolved"},
		"of one that a newer review has replaced": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.AuthDenied)
			open(t, db, v2, "other")
			finish(t, db, v2)
		}, "run1", review.JobCanceled, "run1 resolved"},
		"of one with a newer review that has not succeeded": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.AuthDenied)
			open(t, db, v2, "other")
		}, "run1", review.JobInProgress, "run1 replaying"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, d := bookkeeping(t)
			conn := d.Conn(t)
			open(t, db, v1, "run1")
			tt.before(t, db)
			for range 2 { // the activity is retried
				if job := replay(t, db, tt.former, "run9"); job.State != tt.state || job.State != review.JobSucceeded && job.RunID != "run9" {
					t.Errorf("the replay gets %+v, want it %s", job, tt.state)
				}
			}
			letters := query[string](t, conn, `select coalesce(string_agg(run_id || ' ' || state, ', ' order by id), '') from criticizer.dead_letters`)
			if letters != tt.letters {
				t.Errorf("dead letters are %q, want %q", letters, tt.letters)
			}
			records := query[int](t, conn, `select count(*)::int from criticizer.replays where new_run_id = 'run9' and who = 'olga' and reason = 'TICKET-1' and not explained`)
			if want := query[int](t, conn, `select count(*)::int from criticizer.dead_letters`); records != want {
				t.Errorf("%d replay records of %d letters", records, want)
			}
			if !query[bool](t, conn, `select exists (select from criticizer.audit_log where claimed = 'olga' and action = 'replay' and object = $1 and detail->>'new_run' = 'run9')`, "workflow:"+v1.Key) {
				t.Error("the audit log does not name the reset")
			}
			if tt.state == review.JobInProgress && letters != "" {
				if !record(t, db, "run9", letterOf(failure.AuthDenied)) {
					t.Error("the replay failed for the same reason and was not escalated")
				}
				if n := query[int](t, conn, `select count(*)::int from criticizer.dead_letters where state = 'open'`); n != 1 {
					t.Errorf("%d letters are open, want that of the replay", n)
				}
			}
		})
	}
}

func TestReplaysAtOnce(t *testing.T) { // a bulk replay and a hand-made one: both leave a trace, none fails
	t.Parallel()
	db, d := bookkeeping(t)
	open(t, db, v1, "run1")
	die(t, db, "run1", failure.Unknown)
	var resets sync.WaitGroup
	for _, run := range []string{"run2", "run3", "run4"} {
		resets.Go(func() {
			if _, err := db.BeginReplay(t.Context(), v1, review.Replay{DeadRunID: "run1", NewRunID: run}); err != nil {
				t.Error(err)
			}
		})
	}
	resets.Wait()
	wantState(t, db, v1, review.JobInProgress)
	if n := query[int](t, d.Conn(t), `select count(*)::int from criticizer.replays`); n != 3 {
		t.Errorf("%d replays left a trace, want 3", n)
	}
	if n := query[int](t, d.Conn(t), `select count(*)::int from criticizer.audit_log`); n != 0 {
		t.Errorf("%d audit entries of replays without a person or reason", n)
	}
}
