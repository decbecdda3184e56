package store_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// finish succeeds: a job without deliveries has no recipient to notify.
func finish(t *testing.T, db *store.DB, req review.Request) {
	t.Helper()
	finishAs(t, db, req, review.OutcomeClean, 0, "report:clean")
}

// finishAs succeeds with an outcome.
func finishAs(t *testing.T, db *store.DB, req review.Request, outcome review.Outcome, findings int, report review.ArtifactRef) review.Job {
	t.Helper()
	recordOutcome(t, db, req, outcome, findings, report)
	return must(db.FinishJob(t.Context(), req.Key, report))(t)
}

// recordOutcome records the outcome of a report, as stage llm does.
func recordOutcome(t *testing.T, db *store.DB, req review.Request, outcome review.Outcome, findings int, report review.ArtifactRef) {
	t.Helper()
	d, _ := databases.Load(db)
	job := must(db.Job(t.Context(), req.Key))(t)
	r := review.Report{Changelist: job.Changelist, Version: job.Version, Outcome: outcome, Findings: make([]review.Finding, findings)}
	testkit.NoError(t, d.(*storetest.Database).Open(t, store.RoleLLM).RecordReview(t.Context(), r, report))
}

// A skipped review succeeds and records the rule.
func TestSkipJob(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	open(t, db, v1, "run1")
	must(d.Open(t, store.RoleFetch).RecordContent(t.Context(), 4711, 1, review.Content{SkippedBy: review.SkipRuleTag}))(t)
	for _, rule := range []review.SkipRule{review.SkipRuleUser, review.SkipRuleNewer} { // that stage fetch did not record
		_, err := db.SkipJob(t.Context(), v1.Key, rule)
		wantClass(t, err, failure.InvariantViolated)
	}
	for _, rule := range []review.SkipRule{review.SkipRuleSame, review.SkipRuleNewer} {
		shelf := must(db.ReserveShelf(t.Context(), "p4", 5, string(rule), "run1"))(t)
		must(db.SkipJob(t.Context(), shelf.Key, rule))(t)
	}
	for range 2 { // the activity may be repeated
		job := must(db.SkipJob(t.Context(), v1.Key, review.SkipRuleTag))(t)
		if job.State != review.JobSucceeded || job.Outcome != review.OutcomeNotReviewed || job.SkippedBy != review.SkipRuleTag {
			t.Errorf("job = %+v", job)
		}
	}
	if o := open(t, db, v1, "run2"); o.Decision != review.DecisionDuplicate {
		t.Errorf("the change was opened again: %+v", o)
	}
}

// A changelist is credited if a review of the submitted change read all its files, and its
// findings are known.
func TestCredit(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	for i, outcome := range []review.Outcome{review.OutcomeClean, review.OutcomeFindings, review.OutcomePartial, review.OutcomeNotReviewed} {
		req := review.Request{ServerID: "p4", Changelist: review.Changelist(i + 1), Version: 1}
		req.Key = review.DefaultKey(req.ServerID, req.Changelist, req.Version)
		open(t, db, req, "run1")
		findings := 0
		if outcome == review.OutcomeFindings {
			findings = 1
		}
		finishAs(t, db, req, outcome, findings, "report:1")
	}
	shelf := must(db.ReserveShelf(t.Context(), "p4", 5, "event", "run1"))(t)
	finish(t, db, shelf)
	quoted := review.Finding{Path: "//depot/a.c", Category: review.CategorySecurity, Severity: review.SeverityHigh, Quote: "x = 1;"}
	must(d.Open(t, store.RoleLLM).ReportFindings(t.Context(), 2, 1, []review.Finding{quoted}))(t)
	got := must(d.Open(t, store.RoleFetch).Credit(t.Context(), []review.Changelist{1, 2, 3, 4, 5, 6}))(t)
	want := map[review.Changelist]review.Credit{1: {Read: true}, 2: {Read: true, Findings: []review.CreditedFinding{{
		Origin: review.Origin{Changelist: 2, Version: 1, Fingerprint: quoted.Fingerprint()}, Others: []string{}, Path: "//depot/a.c",
		Category: review.CategorySecurity, Severity: review.SeverityHigh, Verbatim: true,
	}}}, 3: {}, 4: {}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("credit is %+v, want %+v", got, want)
	}
	must(d.Conn(t).Exec(t.Context(), `delete from criticizer.findings`))(t)
	if got := must(d.Open(t, store.RoleFetch).Credit(t.Context(), []review.Changelist{2}))(t); got[2].Read {
		t.Error("a change whose findings are no longer known is credited")
	}
}

// A rerun that found more, a purge and a decision about one version count for the changelist.
func TestCreditOfAllVersions(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	llm, fetch, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleFetch), d.Open(t, store.RoleOperator)
	quoted := review.Finding{Path: "//depot/a.c", Category: review.CategorySecurity, Severity: review.SeverityHigh, Quote: "x = 1;"}
	other := quoted
	other.Quote = "y = 1;"
	tokens := map[review.Version]string{}
	reviewed := func(v review.Version, outcome review.Outcome, findings ...review.Finding) {
		t.Helper()
		req := review.Request{ServerID: "p4", Changelist: 1, Version: v, Key: review.DefaultKey("p4", 1, v)}
		open(t, db, req, "run1")
		finishAs(t, db, req, outcome, len(findings), review.ArtifactRef(fmt.Sprint("report:", v)))
		for _, f := range must(llm.ReportFindings(t.Context(), 1, v, findings))(t) {
			tokens[v] = f.FeedbackToken
		}
	}
	check := func(when string, isRead bool, want ...string) {
		t.Helper()
		credit := must(fetch.Credit(t.Context(), []review.Changelist{1}))(t)[1]
		var got []string
		for _, f := range credit.Findings {
			got = append(got, fmt.Sprint(f.Version, " ", f.Fingerprint))
		}
		slices.Sort(want)
		slices.Sort(got)
		if credit.Read != isRead || !slices.Equal(got, want) {
			t.Errorf("%s: read %v, findings %q; want %v, %q", when, credit.Read, got, isRead, want)
		}
	}
	reviewed(1, review.OutcomeClean)
	check("clean", true)
	reviewed(2, review.OutcomePartial, quoted)
	check("the rerun has a finding", true, "2 "+quoted.Fingerprint())
	reviewed(3, review.OutcomeFindings, quoted, other)
	check("and another one", true, "3 "+quoted.Fingerprint(), "3 "+other.Fingerprint())
	must(operator.AcceptWrong(t.Context(), tokens[2], "olga", "it is right"))(t)
	check("one is accepted to be wrong", true, "3 "+other.Fingerprint())
	must(operator.AcceptWrong(t.Context(), tokens[3], "olga", "it is right"))(t) // a purge leaves its row
	must(d.Conn(t).Exec(t.Context(), `update criticizer.jobs set finished_at = now() - interval '100 days' where review_version = 3`))(t)
	if n := must(d.Open(t, store.RoleRetention).PurgeReviews(t.Context(), 90*24*time.Hour))(t); n != 1 {
		t.Fatalf("purged %d reviews", n)
	}
	check("the rows of a version are purged", false)
}

func TestOpenJobVerdicts(t *testing.T) { // (notification 6.1, 6.2, 10.1, 10.4)
	t.Parallel()
	other := v1
	other.Key = "my-own-key"
	elsewhere := v1
	elsewhere.Changelist = 4712
	foreign := v1
	foreign.ServerID, foreign.Key = "other", review.DefaultKey("other", v1.Changelist, v1.Version)
	succeed := func(t *testing.T, db *store.DB) { open(t, db, v1, "run1"); finish(t, db, v1) }
	running := func(t *testing.T, db *store.DB) { open(t, db, v1, "run1") }
	for _, tc := range []struct {
		name  string
		given func(*testing.T, *store.DB)
		ask   review.Request
		want  review.Decision
		job   review.Request // whose job is returned
		state review.JobState
	}{
		{"a first request runs", func(*testing.T, *store.DB) {}, v1, review.DecisionRun, v1, review.JobInProgress},
		{"the same key runs while unfinished", running, v1, review.DecisionRun, v1, review.JobInProgress},
		{"the same key after success is a duplicate", succeed, v1, review.DecisionDuplicate, v1, review.JobSucceeded},
		{"another key for the version while unfinished is a duplicate", running, other, review.DecisionDuplicate, v1, review.JobInProgress},
		{"another key for the version after success is a duplicate", succeed, other, review.DecisionDuplicate, v1, review.JobSucceeded},
		{"a key that belongs to another changelist is a duplicate", running, elsewhere, review.DecisionDuplicate, v1, review.JobInProgress},
		{"the same number of another server is refused", succeed, foreign, review.DecisionRefused, v1, review.JobSucceeded},
		{"a higher version after success runs", succeed, version(2), review.DecisionRun, version(2), review.JobInProgress},
		{"a higher version while unfinished runs", running, version(2), review.DecisionRun, version(2), review.JobInProgress},
		{
			"a lower version is refused",
			func(t *testing.T, db *store.DB) { open(t, db, version(2), "r"); open(t, db, version(5), "r") },
			version(4), review.DecisionRefused, version(5), review.JobInProgress,
		},
		{
			"an unfinished job runs although a higher version exists",
			func(t *testing.T, db *store.DB) { open(t, db, v1, "r"); open(t, db, version(2), "r") },
			v1, review.DecisionRun, v1, review.JobInProgress,
		},
		{
			"a canceled job may be started again",
			func(t *testing.T, db *store.DB) {
				open(t, db, v1, "r")
				testkit.NoError(t, db.CancelJob(t.Context(), v1.Key, "canceled by olga: tested"))
			},
			v1, review.DecisionRun, v1, review.JobCanceled,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			db, _ := bookkeeping(t)
			tc.given(t, db)
			got := open(t, db, tc.ask, "run2")
			if got.Decision != tc.want || got.Job.Key != tc.job.Key || got.Job.Version != tc.job.Version || got.Job.State != tc.state {
				t.Fatalf("got %+v, want %s with the job of %s, %s", got, tc.want, tc.job.Key, tc.state)
			}
			if got.Decision == review.DecisionRun && (cmp.Or(got.FormerRun, "run2") != got.Job.RunID || got.Job.WorkflowID != tc.ask.Key) {
				t.Errorf("job names run %s of workflow %s, former run %q", got.Job.RunID, got.Job.WorkflowID, got.FormerRun)
			}
		})
	}
}

func TestOpenJobAtOnce(t *testing.T) { // never a second job (notification 10.1)
	t.Parallel()
	db, d := bookkeeping(t)
	const callers = 8
	results := make([]review.OpenResult, callers)
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			req := v1
			req.Key = string(rune('a'+i)) + "-key"
			var err error
			if results[i], err = db.OpenJob(t.Context(), req, "run"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	runs := 0
	for _, v := range results {
		if v.Decision == review.DecisionRun {
			runs++
		}
		if v.Job.ID != results[0].Job.ID {
			t.Errorf("callers got jobs %d and %d", v.Job.ID, results[0].Job.ID)
		}
	}
	if rows := query[int](t, d.Conn(t), `select count(*)::int from criticizer.jobs`); runs != 1 || rows != 1 {
		t.Errorf("%d callers got the decision run, %d jobs: want 1 and 1", runs, rows)
	}
}

func TestFinishJobNeedsEverybodyTold(t *testing.T) { // (notification 6.5)
	t.Parallel()
	db, d := bookkeeping(t)
	outbox := d.Open(t, store.RoleNotify)
	open(t, db, v1, "run1")
	rows := must(outbox.PrepareDeliveries(t.Context(), 4711, 1, []string{"a@corp.test", "b@corp.test"}))(t)
	// The deliveries of another version do not count.
	open(t, db, version(2), "run2")
	must(outbox.PrepareDeliveries(t.Context(), 4711, 2, []string{"a@corp.test"}))(t)

	recordOutcome(t, db, v1, review.OutcomeFindings, 2, "report:1")
	refused := func() {
		t.Helper()
		_, err := db.FinishJob(t.Context(), v1.Key, "report:1")
		wantClass(t, err, failure.InvariantViolated)
		wantState(t, db, v1, review.JobInProgress)
	}
	refused()
	testkit.NoError(t, outbox.MarkSent(t.Context(), rows[0].ID, "m1", "accepted"))
	refused()
	refusing := must(outbox.BeginDelivery(t.Context(), rows[1]))(t)
	testkit.NoError(t, outbox.MarkDeliveryFailed(t.Context(), refusing, failure.RecipientRejected))
	refused()
	exec(t, d.Conn(t), `update criticizer.deliveries set status = 'waived' where id = $1`, rows[1].ID)
	job := must(db.FinishJob(t.Context(), v1.Key, "report:1"))(t)
	if job.State != review.JobSucceeded || job.Outcome != review.OutcomeFindings || job.Findings != 2 {
		t.Errorf("got %+v", job)
	}
	again := must(db.FinishJob(t.Context(), v1.Key, "report:2"))(t)
	if again != job {
		t.Errorf("finishing again changed %+v to %+v", job, again)
	}
}

func TestJobRefuses(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	_, err := db.FinishJob(t.Context(), "unknown", "report:1")
	wantClass(t, err, failure.NotFound)
	job, err := db.BeginReplay(t.Context(), v1, review.Replay{DeadRunID: "run1", NewRunID: "run2"})
	if testkit.NoError(t, err); job.State != review.JobInProgress || job.ID != 0 {
		t.Errorf("the replay of a refused request has the job %+v", job)
	}
	testkit.NoError(t, db.CancelJob(t.Context(), "unknown", ""))
	open(t, db, v1, "run1")
	recordOutcome(t, db, v1, review.OutcomeClean, 3, "report:1")
	_, err = db.FinishJob(t.Context(), v1.Key, "report:1") // a clean review has no findings
	wantClass(t, err, failure.InvariantViolated)
}

// A job ends with what role llm recorded for this report of this review, or not at all: a
// workflow cannot name an outcome.
func TestFinishJobNeedsARecordedOutcome(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	open(t, db, v1, "run1")
	open(t, db, of(12), "run1")
	recordOutcome(t, db, of(12), review.OutcomeClean, 0, "report:of another review")
	recordOutcome(t, db, v1, review.OutcomeFindings, 3, "report:1")
	for _, report := range []review.ArtifactRef{"", "report:of another review", "report:2"} {
		_, err := db.FinishJob(t.Context(), v1.Key, report)
		wantClass(t, err, failure.InvariantViolated)
		wantState(t, db, v1, review.JobInProgress)
	}
	job := must(db.FinishJob(t.Context(), v1.Key, "report:1"))(t)
	if job.Outcome != review.OutcomeFindings || job.Findings != 3 || job.Coverage == "" {
		t.Errorf("job = %+v", job)
	}
}

// The job of a run that was terminated is closed, unless the run closed it or a reset
// replaced the run meanwhile. Of several workers, one looks at a review.
func TestCloseEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(*testing.T, *store.DB)
		run    string
		closed review.JobState
		state  review.JobState
		letter string
	}{
		"running":          {func(*testing.T, *store.DB) {}, "run1", review.JobCanceled, review.JobCanceled, ""},
		"reset meanwhile":  {func(t *testing.T, db *store.DB) { replay(t, db, "run1", "run2") }, "run1", "", review.JobInProgress, ""},
		"closed meanwhile": {func(t *testing.T, db *store.DB) { finish(t, db, v1) }, "run1", "", review.JobSucceeded, ""},
		"dead":             {func(t *testing.T, db *store.DB) { die(t, db, "run1", failure.Unknown) }, "run1", "", review.JobRetryableFailed, "open"},
		"a replay": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.Unknown)
			replay(t, db, "run1", "run2")
		}, "run2", review.JobRetryableFailed, review.JobRetryableFailed, "open"},
		"a canceled replay": {func(t *testing.T, db *store.DB) {
			die(t, db, "run1", failure.Unknown)
			replay(t, db, "run1", "run2")
			testkit.NoError(t, db.CancelJob(t.Context(), v1.Key, "canceled by olga: tested"))
		}, "run2", review.JobRetryableFailed, review.JobRetryableFailed, "open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, d := bookkeeping(t)
			conn := d.Conn(t)
			open(t, db, of(1), "run1") // another review, with a letter
			must(db.RecordDeadLetter(t.Context(), of(1), "run1", letterOf(failure.Unknown)))(t)
			open(t, db, v1, "run1")
			tt.before(t, db)
			for _, want := range []review.JobState{tt.closed, ""} { // the second time nothing is left to close
				got, err := db.CloseEnded(t.Context(), store.Run{WorkflowID: v1.Key, RunID: tt.run}, "its run is terminated")
				if testkit.NoError(t, err); got != want {
					t.Errorf("closed as %q, want %q", got, want)
				}
			}
			wantState(t, db, v1, tt.state)
			if got := query[string](t, conn, `select coalesce(string_agg(state, ','), '') from criticizer.dead_letters where changelist_id <> 1`); got != tt.letter {
				t.Errorf("dead letter is %q, want %q", got, tt.letter)
			}
			if n := query[int](t, conn, `select count(*)::int from criticizer.audit_log where action = 'close' and object = $1`, "workflow:"+v1.Key); (n == 1) != (tt.closed != "") {
				t.Errorf("the audit log has %d closings", n)
			}
		})
	}
}

// One worker at a time watches, until the interval has passed.
func TestClaimWatch(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	for i, want := range []bool{true, false, true} {
		if i == 2 {
			exec(t, d.Conn(t), `update criticizer.watch set due_at = due_at - interval '1 minute'`)
		}
		if got, err := db.ClaimWatch(t.Context(), time.Minute); err != nil || got != want {
			t.Errorf("claim %d: %t, %v", i, got, err)
		}
	}
}

// of returns the request for a review of a changelist.
func of(cl review.Changelist) review.Request {
	return review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
}

// Each unfinished review, and each replay, is claimed once in a while.
func TestClaimUnfinished(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	for cl := range review.Changelist(5) {
		open(t, books, of(cl+1), "run1")
	}
	finish(t, books, of(4))
	must(books.RecordDeadLetter(t.Context(), of(5), "run1", letterOf(failure.Unknown)))(t)
	claim := func() (keys []string) {
		t.Helper()
		claimed := must(books.ClaimUnfinished(t.Context()))(t)
		for _, r := range claimed {
			keys = append(keys, r.WorkflowID)
		}
		slices.Sort(keys)
		return keys
	}
	if got := claim(); got != nil {
		t.Errorf("claimed %v, which have just begun", got)
	}
	exec(t, d.Conn(t), `update criticizer.jobs set updated_at = now() - interval '1 minute' * (10 - changelist_id)`)
	exec(t, d.Conn(t), `update criticizer.dead_letters set state = 'replaying'`)
	if got, want := claim(), []string{of(1).Key, of(2).Key, of(3).Key, of(5).Key}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	if got := claim(); got != nil {
		t.Errorf("claimed %v again", got)
	}
}
