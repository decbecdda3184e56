package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
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
	if traces != "run2 olga TICKET-1 t" {
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
		"of a canceled one": {func(t *testing.T, db *store.DB) {
			testkit.NoError(t, db.CancelJob(t.Context(), v1.Key, "canceled by olga: tested"))
		}, "run1", review.JobInProgress, ""},
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
			records := query[int](t, conn, `select count(*)::int from criticizer.replays where new_run_id = 'run9' and who = 'olga' and reason = 'TICKET-1' and explained`)
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

// dead returns a database with one dead letter, opened as bookkeeping and as operator,
// and the letter.
func dead(t *testing.T, class failure.Class) (*store.DB, *store.DB, *storetest.Database, store.DeadLetter) {
	t.Helper()
	books, d := bookkeeping(t)
	operator := d.Open(t, store.RoleOperator)
	open(t, books, v1, "run1")
	die(t, books, "run1", class)
	return books, operator, d, onlyLetter(t, operator)
}

func onlyLetter(t *testing.T, db *store.DB) store.DeadLetter {
	t.Helper()
	letters := must(db.DeadLetters(t.Context(), store.DeadLetterFilter{}))(t)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want 1", len(letters))
	}
	return letters[0]
}

func request(t *testing.T, db *store.DB, letter int64, full bool) store.ReplayRequest {
	t.Helper()
	return must(db.RequestReplay(t.Context(), store.ReplayRequest{DeadLetterID: letter, Who: "olga@desk", Reason: "TICKET-1", Full: full}))(t)
}

func TestDeadLettersAreFiltered(t *testing.T) {
	t.Parallel()
	_, db, _, letter := dead(t, failure.AuthDenied)
	for name, tc := range map[string]struct {
		filter store.DeadLetterFilter
		want   int
	}{
		"everything":       {store.DeadLetterFilter{}, 1},
		"its id":           {store.DeadLetterFilter{IDs: []int64{letter.ID}}, 1},
		"another id":       {store.DeadLetterFilter{IDs: []int64{letter.ID + 1}}, 0},
		"its class":        {store.DeadLetterFilter{Class: failure.AuthDenied}, 1},
		"another class":    {store.DeadLetterFilter{Class: failure.Unknown}, 0},
		"its stage":        {store.DeadLetterFilter{Stage: review.StageLLM}, 1},
		"another stage":    {store.DeadLetterFilter{Stage: review.StageFetch}, 0},
		"its state":        {store.DeadLetterFilter{States: []store.DeadLetterState{store.DeadLetterOpen, store.DeadLetterReplaying}}, 1},
		"another state":    {store.DeadLetterFilter{States: []store.DeadLetterState{store.DeadLetterResolved}}, 0},
		"older than it is": {store.DeadLetterFilter{OlderThan: time.Hour}, 0},
		"escalated":        {store.DeadLetterFilter{Escalated: true}, 0},
		"unexplained":      {store.DeadLetterFilter{Unexplained: true}, 0},
		"its changelist":   {store.DeadLetterFilter{Changelist: v1.Changelist}, 1},
	} {
		letters := must(db.DeadLetters(t.Context(), tc.filter))(t)
		if len(letters) != tc.want {
			t.Errorf("%s: %d letters, want %d", name, len(letters), tc.want)
		}
	}
	if found, err := db.DeadLetter(t.Context(), letter.ID); err != nil || found.ID != letter.ID || found.ErrorClass != letter.ErrorClass {
		t.Errorf("letter %d is %+v, %v", letter.ID, found, err)
	}
	_, err := db.DeadLetter(t.Context(), letter.ID+1)
	wantClass(t, err, failure.NotFound)
	if letter.ErrorClass != failure.AuthDenied || letter.SanitizedContext["upstream"] != "503" || letter.Attempts != 5 {
		t.Errorf("the payload came back as %+v", letter.DeadLetter)
	}
}

// A replay that was requested with a reason is explained, in either order of the run's
// and the operator's record (processing 8.5.3).
func TestRequestedReplayIsExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		full  bool
		steps func(t *testing.T, books, operator *store.DB, r store.ReplayRequest)
	}{
		"the operator confirms first": {false, func(t *testing.T, books, operator *store.DB, r store.ReplayRequest) {
			t.Helper()
			testkit.NoError(t, operator.ConfirmReplay(t.Context(), r, "run2"))
			replay(t, books, "run1", "run2")
		}},
		"the run begins first": {false, func(t *testing.T, books, operator *store.DB, r store.ReplayRequest) {
			t.Helper()
			replay(t, books, "run1", "run2")
			testkit.NoError(t, operator.ConfirmReplay(t.Context(), r, "run2"))
		}},
		"the operator's process dies before it confirms": {false, func(t *testing.T, books, _ *store.DB, _ store.ReplayRequest) {
			t.Helper()
			replay(t, books, "run1", "run2")
		}},
		"a full restart begins first": {true, func(t *testing.T, books, operator *store.DB, r store.ReplayRequest) {
			t.Helper()
			open(t, books, v1, "run2")
			testkit.NoError(t, operator.ConfirmReplay(t.Context(), r, "run2"))
		}},
		"a full restart is confirmed first": {true, func(t *testing.T, books, operator *store.DB, r store.ReplayRequest) {
			t.Helper()
			testkit.NoError(t, operator.ConfirmReplay(t.Context(), r, "run2"))
			open(t, books, v1, "run2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			books, operator, _, letter := dead(t, failure.AuthDenied)
			tc.steps(t, books, operator, request(t, operator, letter.ID, tc.full))
			if got := onlyLetter(t, operator); got.State != store.DeadLetterReplaying || got.Interrupted || got.Unexplained {
				t.Errorf("during the replay the letter is %+v", got)
			}
			replays := must(operator.Replays(t.Context(), letter.ID))(t)
			if len(replays) != 1 || !replays[0].Explained || replays[0].NewRunID != "run2" || replays[0].Reason != "TICKET-1" || replays[0].Full != tc.full {
				t.Errorf("replays are %+v", replays)
			}
			finish(t, books, v1)
			if got := onlyLetter(t, operator); got.State != store.DeadLetterResolved || got.Resolution != "TICKET-1" || got.ResolvedBy != "olga@desk" || got.Unexplained || got.Interrupted {
				t.Errorf("after success the letter is %+v", got)
			}
		})
	}
}

func TestResetWithoutTheEvidenceIsUnexplained(t *testing.T) {
	t.Parallel()
	books, operator, _, letter := dead(t, failure.AuthDenied)
	r := request(t, operator, letter.ID, false)
	must(books.BeginReplay(t.Context(), v1, review.Replay{DeadRunID: "run1", NewRunID: "run2", Identity: "ui", Reason: "Reset from the Web UI"}))(t)
	testkit.NoError(t, operator.ConfirmReplay(t.Context(), r, "run3")) // what olga asked for came second
	replays := must(operator.Replays(t.Context(), letter.ID))(t)
	if len(replays) != 2 || replays[0].Explained || !replays[1].Explained {
		t.Errorf("replays are %+v", replays)
	}
	if !onlyLetter(t, operator).Unexplained {
		t.Error("the letter is not shown as unexplained")
	}
	finish(t, books, v1)
	if got := onlyLetter(t, operator); got.ResolvedBy != "olga@desk" || got.Resolution != "TICKET-1" {
		t.Errorf("resolved by %s: %s, want the last replay", got.ResolvedBy, got.Resolution)
	}
	open(t, books, of(1), "run1") // another letter, whose replay is explained
	must(books.RecordDeadLetter(t.Context(), of(1), "run1", letterOf(failure.AuthDenied)))(t)
	explained := must(operator.DeadLetters(t.Context(), store.DeadLetterFilter{Changelist: 1}))(t)
	testkit.NoError(t, operator.ConfirmReplay(t.Context(), request(t, operator, explained[0].ID, false), "run4"))
	listed := must(operator.DeadLetters(t.Context(), store.DeadLetterFilter{Unexplained: true}))(t)
	if len(listed) != 1 || listed[0].ID != letter.ID {
		t.Errorf("unexplained are %+v", listed)
	}
	if n := must(operator.AnnotateDeadLetter(t.Context(), letter.ID, "olga@desk", "it was Ivan"))(t); n != 1 {
		t.Errorf("%d replays are acknowledged, want 1", n)
	}
	if r := must(operator.Replays(t.Context(), letter.ID))(t)[0]; r.AcknowledgedBy != "olga@desk" || !r.Explained || onlyUnexplained(t, operator) != 0 {
		t.Errorf("after the acknowledgement the replay is %+v", r)
	}
	must(books.BeginReplay(t.Context(), of(1), review.Replay{DeadRunID: "run1", NewRunID: "run5", Identity: "ivan@desk", Reason: "INC-8: by hand"}))(t)
	if onlyUnexplained(t, operator) != 0 {
		t.Error("a reset with a reason is unexplained")
	}
}

func onlyUnexplained(t *testing.T, operator *store.DB) int {
	t.Helper()
	return len(must(operator.DeadLetters(t.Context(), store.DeadLetterFilter{Unexplained: true}))(t))
}

// The note of a replay is kept in the audit log; an unexplained reset stays so.
func TestNoteOfAReplayAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	_, operator, d, letter := dead(t, failure.AuthDenied)
	exec(t, d.Conn(t), `insert into criticizer.replays (dead_letter_id, new_run_id, who, reason) select id, 'run2', 'ivan@desk', '' from criticizer.dead_letters`)
	must(operator.RequestReplay(t.Context(), store.ReplayRequest{DeadLetterID: letter.ID, Who: "olga@desk", Reason: "TICKET-2", Note: "ENG-7: build 8"}))(t)
	if onlyUnexplained(t, operator) != 1 {
		t.Error("the reset is acknowledged")
	}
	trail := must(operator.Trail(t.Context(), letter.ID))(t)
	if !slices.ContainsFunc(trail, func(e store.AuditEntry) bool {
		return e.Action == "annotate" && strings.Contains(string(e.Detail), "ENG-7: build 8")
	}) {
		t.Errorf("the trail is %+v", trail)
	}
}

func TestRequestReplayGuardsTheState(t *testing.T) {
	t.Parallel()
	books, operator, _, letter := dead(t, failure.AuthDenied)
	_, err := operator.RequestReplay(t.Context(), store.ReplayRequest{DeadLetterID: letter.ID + 1, Who: "olga", Reason: "x"})
	wantClass(t, err, failure.NotFound)
	request(t, operator, letter.ID, false)
	if got := onlyLetter(t, operator); got.State != store.DeadLetterReplaying || !got.Interrupted {
		t.Fatalf("after the request the letter is %+v", got)
	}
	again := request(t, operator, letter.ID, false) // the first was interrupted
	pending, ok, err := operator.InterruptedReplay(t.Context(), letter.ID)
	testkit.NoError(t, err)
	if !ok || pending != again {
		t.Errorf("pending is %+v, want %+v", pending, again)
	}
	testkit.NoError(t, operator.WithdrawReplay(t.Context(), again))
	if got := onlyLetter(t, operator); got.State != store.DeadLetterOpen || got.Interrupted {
		t.Errorf("after the withdrawal the letter is %+v", got)
	}
	replay(t, books, "run1", "run2")
	_, err = operator.RequestReplay(t.Context(), again)
	wantClass(t, err, failure.WriteConflict)
	finish(t, books, v1)
	_, err = operator.RequestReplay(t.Context(), again)
	wantClass(t, err, failure.WriteConflict)
}

func TestHeldDeadLetterIsHeldOnce(t *testing.T) {
	t.Parallel()
	_, operator, d, letter := dead(t, failure.AuthDenied)
	release, ok, err := operator.HoldDeadLetter(t.Context(), letter.ID)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	other := d.Open(t, store.RoleOperator)
	if _, ok, err := other.HoldDeadLetter(t.Context(), letter.ID); ok || err != nil {
		t.Errorf("a second operator holds it too (%v)", err)
	}
	release()
	release, ok, err = other.HoldDeadLetter(t.Context(), letter.ID)
	if err != nil || !ok {
		t.Fatal("it was not released", err)
	}
	release()
}

func TestDecisionsLeaveATrail(t *testing.T) { // (processing 8.5.5)
	t.Parallel()
	_, operator, _, letter := dead(t, failure.AuthDenied)
	testkit.NoError(t, operator.WithdrawReplay(t.Context(), request(t, operator, letter.ID, false)))
	requested := request(t, operator, letter.ID, false)
	for range 2 { // the second time changes nothing
		testkit.NoError(t, operator.ConfirmReplay(t.Context(), requested, "run2"))
	}
	must(operator.AnnotateDeadLetter(t.Context(), letter.ID, "olga", "seen"))(t)
	testkit.NoError(t, operator.ResolveDeadLetter(t.Context(), letter.ID, "olga", "reviewed by hand"))
	wantClass(t, operator.ResolveDeadLetter(t.Context(), letter.ID, "olga", "again"), failure.WriteConflict)
	wantClass(t, errOf(operator.AnnotateDeadLetter(t.Context(), letter.ID+1, "olga", "x")), failure.NotFound)
	trail := must(operator.Trail(t.Context(), letter.ID))(t)
	var actions []string
	for _, e := range trail {
		actions = append(actions, e.Claimed+" "+e.Action)
	}
	if want := []string{
		"olga@desk request replay", "olga@desk withdraw replay", "olga@desk request replay", "olga@desk replay", "olga annotate", "olga resolve",
	}; !slices.Equal(actions, want) {
		t.Errorf("the trail is %v, want %v", actions, want)
	}
	if got := onlyLetter(t, operator); got.ResolvedBy != "olga" || got.Resolution != "reviewed by hand" {
		t.Errorf("resolved by %q: %q", got.ResolvedBy, got.Resolution)
	}
}

func TestClaimPageReturnsTheErrorOfItsClaim(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	exec(t, d.Conn(t), "alter table criticizer.pages rename to gone")
	if page, _, _, ok, err := books.ClaimPage(t.Context(), time.Minute); ok || err == nil {
		t.Errorf("claimed %+v, error %v", page, err)
	}
}

// A bug and a denied credential page at once, any other class only when a replay has
// failed again (processing 8.1, 8.5).
func TestPagesAreClaimedOnceUntilTheyAreSent(t *testing.T) {
	t.Parallel()
	books, operator, d, letter := dead(t, failure.InvariantViolated)
	page, accepted, attempt, ok, err := books.ClaimPage(t.Context(), time.Minute)
	testkit.NoError(t, err)
	if !ok || page.DeadLetterID != letter.ID || page.Reason != failure.PageBug || page.Hint == "" || attempt != 1 || len(accepted) != 0 {
		t.Fatalf("claimed %+v, accepted %v, attempt %d", page, accepted, attempt)
	}
	if _, _, _, ok, err := books.ClaimPage(t.Context(), time.Minute); ok || err != nil {
		t.Errorf("claimed twice (%v)", err)
	}
	testkit.NoError(t, books.MarkPageAccepted(t.Context(), page.ID, "mail"))
	testkit.NoError(t, books.PostponePage(t.Context(), page.ID, 0))
	again, accepted, attempt, ok, err := books.ClaimPage(t.Context(), time.Minute)
	testkit.NoError(t, err)
	if !ok || again != page || attempt != 2 || !slices.Equal(accepted, []string{"mail"}) {
		t.Errorf("then %+v, accepted %v, attempt %d", again, accepted, attempt)
	}
	open(t, books, of(1), "run1")
	must(books.RecordDeadLetter(t.Context(), of(1), "run1", letterOf(failure.InvariantViolated)))(t)
	testkit.NoError(t, books.MarkPageAccepted(t.Context(), page.ID, "oncall"))
	testkit.NoError(t, books.PostponePage(t.Context(), page.ID, time.Hour))
	other, accepted, attempt, ok, err := books.ClaimPage(t.Context(), time.Minute)
	if testkit.NoError(t, err); !ok || other.Changelist != 1 || attempt != 1 || len(accepted) != 0 {
		t.Errorf("the page of another letter is %+v, accepted %v, attempt %d", other, accepted, attempt)
	}
	testkit.NoError(t, books.MarkPageSent(t.Context(), page.ID))
	testkit.NoError(t, books.PostponePage(t.Context(), page.ID, 0)) // too late to matter
	if _, _, _, ok, _ := books.ClaimPage(t.Context(), time.Minute); ok {
		t.Error("claimed after it was sent")
	}
	if n := query[int](t, d.Conn(t), `select count(*)::int from criticizer.pages where sent_at is not null`); n != 1 {
		t.Errorf("%d pages are sent, want 1", n)
	}
	state := must(operator.PageOf(t.Context(), letter.ID))(t)
	if state == nil || state.SentAt == nil || state.Attempts != 2 {
		t.Errorf("operators see %+v", state)
	}
}

// A refused key stops every review and pages once.
func TestDenialsPageOnce(t *testing.T) {
	t.Parallel()
	for _, class := range []failure.Class{failure.AuthDenied, failure.QuotaExhausted} {
		books, operator, d, letter := dead(t, class)
		dies := func(cl review.Changelist, letter failure.DeadLetter) {
			t.Helper()
			open(t, books, of(cl), "run1")
			must(books.RecordDeadLetter(t.Context(), of(cl), "run1", letter))(t)
		}
		wantPages := func(what string, want int) {
			t.Helper()
			if n := query[int](t, d.Conn(t), `select count(*)::int from criticizer.pages where reason = 'denied'`); n != want {
				t.Errorf("%s, %s: %d pages, want %d", class, what, n, want)
			}
		}
		wantPages("the first", 1)
		dies(1, letterOf(class))
		wantPages("the same once more", 1)
		elsewhere := letterOf(class)
		elsewhere.Stage = "fetch"
		dies(2, elsewhere)
		wantPages("of another stage", 2)
		testkit.NoError(t, operator.ResolveDeadLetter(t.Context(), letter.ID, "olga", "key renewed"))
		dies(3, letterOf(class))
		wantPages("again, after that was settled", 3)
	}
}

func TestNoPageAboutOrdinaryOrSettledLetters(t *testing.T) {
	t.Parallel()
	_, operator, _, letter := dead(t, failure.UpstreamUnavailable)
	if page, err := operator.PageOf(t.Context(), letter.ID); page != nil || err != nil {
		t.Errorf("an outage made page %+v (%v)", page, err)
	}
	books, operator, _, letter := dead(t, failure.Unknown)
	testkit.NoError(t, operator.ResolveDeadLetter(t.Context(), letter.ID, "olga", "known"))
	if _, _, _, ok, err := books.ClaimPage(t.Context(), time.Minute); ok || err != nil {
		t.Errorf("paged about a resolved letter (%v)", err)
	}
}
