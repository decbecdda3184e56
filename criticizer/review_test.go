package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// The list needs Postgres only: an operator uses it while Temporal is down.
func TestReviewsAreListed(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	if out := s.must("review", "list"); out != "no reviews\n" {
		t.Errorf("none are listed as %q", out)
	}
	s.review(4711)
	s.review(4712, errDenied)
	away := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}
	listed := func(args ...string) string {
		t.Helper()
		a := s.with(away, append([]string{"review", "list"}, args...)...)
		if a.status != 0 || a.err != "" {
			t.Fatalf("%v: status %d, %s", args, a.status, a.err)
		}
		return a.out
	}
	contains(t, listed("--limit", "1"), "4712 v1", "the newest 1; --limit shows more")
	for _, args := range [][]string{{"--state", "succeeded"}, {"--outcome", "findings"}, {"--since", "1h", "--state", "succeeded", "--outcome", "findings"}} {
		var found []store.RecentReview
		if err := json.Unmarshal([]byte(listed(append(args, "--json")...)), &found); err != nil || len(found) != 1 || found[0].Changelist != 4711 {
			t.Errorf("%v: %+v, %v", args, found, err)
		}
	}
	if out := listed("--state", "canceled", "--json"); out != "[]\n" {
		t.Errorf("no reviews are %q in JSON", out)
	}
	var found []store.RecentReview
	if err := json.Unmarshal([]byte(listed("--json")), &found); err != nil || len(found) != 2 || found[0].DeadLetter == nil || found[1].Outcome != review.OutcomeFindings {
		t.Errorf("got %+v, %v", found, err)
	}
	if table, wide := listed(), listed("-o", "wide"); strings.Contains(table, "WORKFLOW") || !strings.Contains(wide, "DETAIL") {
		t.Errorf("the table\n%s\nthe wide one\n%s", table, wide)
	} else {
		contains(t, wide, "WORKFLOW", "RUN", found[0].WorkflowID, found[0].RunID)
	}
	if out := listed() + listed("--json"); strings.Contains(out, "@") || strings.Contains(out, "//depot") {
		t.Errorf("it shows an address or a path: %s", out)
	}
}

// A review that left parts out is started again, for a reason; one that read all is not.
func TestReviewRerun(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711)
	args := []string{"review", "rerun", "4711", "--gaps", "--reason", "INC-42: the filter is corrected"}
	checkRefusal(t, "of a review that read all", s.criticizer(args...), 1, "left nothing out")
	hidden := activitiestest.Read("//depot/a.go")
	hidden[0].Lines = append(hidden[0].Lines, review.Lines{First: 2, Last: 3, State: review.LinesHidden, Why: review.SkipLongLine})
	s.world.SetDraft(review.Draft{Coverage: hidden})
	s.review(4714)
	checkRefusal(t, "of lines that no model is asked about", s.criticizer("review", "rerun", "4714", "--gaps", "--reason", "x"), 1, "no part that the model did not answer")
	checkRefusal(t, "of no review", s.criticizer("review", "rerun", "4713", "--gaps", "--reason", "x"), 1, "4713 has no review")
	checkRefusal(t, "without --gaps", s.criticizer("review", "rerun", "4711", "--reason", "x"), 2, "gaps")
	coverage := activitiestest.Read("//depot/a.go")
	coverage[0].Lines = append(coverage[0].Lines, review.Lines{First: 2, Last: 3, State: review.LinesHidden, Why: review.SkipRefused})
	s.world.SetDraft(review.Draft{Coverage: coverage, Unread: []review.Unread{{Path: "//depot/a.go", Lines: "2-3", Why: review.SkipRefused, Class: "CONTENT_POLICY", Context: "400 content_filter"}}})
	s.review(4712)
	contains(t, s.must("status", "4712"), "not read", "//depot/a.go, lines 2-3: "+string(review.SkipRefused)+" CONTENT_POLICY 400 content_filter")
	args[2] = "4712"
	expire := func(from, to string) {
		t.Helper()
		_, err := s.database.Conn(t).Exec(t.Context(), `update criticizer.jobs set report = replace(report, $1, $2) where changelist_id = 4712`, from, to)
		testkit.NoError(t, err)
	}
	expire("report:", "report:gone")
	checkRefusal(t, "of a review whose report has expired", s.criticizer(args...), 1, "the report of version 1 of the review of changelist 4712 has expired")
	expire("report:gone", "report:")
	contains(t, s.must(args...), "review of changelist 4712 version 2 started", "review-p4-4712-v2")
	testkit.NoError(t, s.runs.GetWorkflow(t.Context(), "review-p4-4712-v2", "").Get(t.Context(), nil))
	contains(t, s.must("status", "4712"), "version 1", "version 2", "succeeded, partial")
	var reason string
	err := s.database.Conn(t).QueryRow(t.Context(), `select detail ->> 'reason' from criticizer.audit_log where action = 'review.rerun' and object = 'review:review-p4-4712-v2'`).Scan(&reason)
	if err != nil || reason != "INC-42: the filter is corrected" {
		t.Errorf("recorded %q, error %v", reason, err)
	}
}

func TestReviewListRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"--state dead", `--state "dead": want in_progress, succeeded, retryable_failed or canceled`},
		{"--outcome good", `--outcome "good": want clean, findings, partial or not_reviewed`},
		{"--since -1h", `--since "-1h": want`},
		{"--limit 0", `--limit "0": want a whole number from 1 to 10000`},
		{"4711", "takes no arguments"},
	} {
		checkRefusal(t, tt.args, say(t, nil, append([]string{"review", "list"}, strings.Fields(tt.args)...)...), 2, tt.want)
	}
}

func TestReviewTable(t *testing.T) {
	t.Parallel()
	begun := time.Now().Add(-time.Hour)
	ended := begun.Add(90 * time.Second)
	reviewed := func(j review.Job, end *time.Time) listedReview {
		j.Changelist, j.Version = 4711, 2
		return listedReview{RecentReview: store.RecentReview{ReviewRow: store.ReviewRow{Job: j, CreatedAt: begun, FinishedAt: end}}}
	}
	waits := reviewed(review.Job{State: review.JobInProgress}, nil)
	waits.Stage = review.StageLLM
	skipped := review.Job{State: review.JobSucceeded, Outcome: review.OutcomeNotReviewed, SkippedBy: review.SkipRuleNewer, Shelved: true}
	var out strings.Builder
	operator.WriteTable(&out, "", reviewTable.rows([]listedReview{waits, reviewed(skipped, &ended)}))
	const want = `CHANGELIST  STATE        OUTCOME       FINDINGS  STARTED               TOOK          DETAIL
4711 v2     in_progress  -             -         %[1]s  1h00m so far  in stage llm
4711 v2     succeeded    not_reviewed  0         %[1]s  1m            shelf; skipped: the changelist was shelved again before the review was over
`
	if want := fmt.Sprintf(want, operator.Stamp(begun)); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// A review by a stand-in does not look as if a model had approved the change.
func TestStandInIsNamed(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711)
	s.review(4712)
	_, err := s.database.Conn(t).Exec(t.Context(), `update criticizer.outcomes set stand_in = true where changelist_id = 4712`)
	testkit.NoError(t, err)
	for command, want := range map[string]int{"review list": 1, "status 4711": 0, "status 4712": 1} {
		out := s.must(strings.Fields(command)...)
		if named := strings.Count(out, "findings (no model read it)"); named != want {
			t.Errorf("%s names %d stand-ins, want %d:\n%s", command, named, want, out)
		}
	}
	var listed []struct {
		Changelist review.Changelist `json:"changelist"`
		StandIn    bool              `json:"stand_in"`
	}
	if err := json.Unmarshal([]byte(s.must("review", "list", "--json")), &listed); err != nil || len(listed) != 2 || !listed[0].StandIn || listed[1].StandIn {
		t.Errorf("listed %+v, %v", listed, err)
	}
}

// TestReviewIsRendered compares a review with all its parts, and the details of
// its dead letter and its delivery, with testdata/review.golden; -update writes it.
func TestReviewIsRendered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	trail := []store.AuditEntry{{At: at, Actor: "ops", Role: "criticizer_operator", Claimed: "olga@desk", Action: "replay", Detail: []byte(`{"reason":"INC-42: key renewed\u001b[2J"}`)}}
	delivery := store.OutboxEntry{
		ID: 7, Changelist: 4711, Version: 2, Recipient: "alice@corp.test", Status: review.DeliverySent, Attempts: 2, LastAttemptAt: &at,
		NotificationID: "m1", NotifiedAt: &at, Evidence: "journal", ConfirmedAt: &at, JobState: review.JobSucceeded, WorkflowID: "review-p4-4711-v2",
	}
	letter := deadLetterView{
		DeadLetter: store.DeadLetter{
			ID: 12, WorkflowID: "review-p4-4711-v2", RunID: "run-1", Changelist: 4711, Version: 2, State: store.DeadLetterResolved, Unexplained: true,
			RecordedAt: at, ResolvedAt: &at, ResolvedBy: "olga@desk", Resolution: "INC-42: key renewed",
			DeadLetter: failure.DeadLetter{
				ErrorClass: failure.AuthDenied, Stage: "llm", Attempts: 1, FirstFailureAt: at, LastFailureAt: at,
				SanitizedContext: map[string]string{"stage": "llm", "attempts": "1"}, LastStack: "model refused the key\x1b[2J\nat call 1", Hint: "renew the credential, then replay",
			},
		},
		Replays: []store.Replay{{DeadLetterID: 12, NewRunID: "run-2", Who: "olga@desk", Reason: "INC-42: key renewed", Full: true, StartedAt: at}},
		Page:    &store.PageState{Reason: "denied", SentAt: &at},
		Trail:   trail,
	}
	v := reviewView{
		ReviewRow: store.ReviewRow{CreatedAt: at, FinishedAt: &at, Job: review.Job{
			Changelist: 4711, Version: 2, WorkflowID: "review-p4-4711-v2", RunID: "run-2", State: review.JobSucceeded, Outcome: review.OutcomePartial, Findings: 2,
		}},
		Run: &runView{ID: "run-2", Status: "Completed", Activities: []temporal.Pending{{Name: "llm", State: "waiting", Attempt: 3, Class: "RATE_LIMITED", Error: "model is busy", Next: &at}}},
		Provenance: &review.Record{
			Model: "m-1", PromptDigest: strings.Repeat("ab", 32),
			Usage:        review.Usage{Calls: 3, PromptTokens: 700, CompletionTokens: 50, CachedTokens: 100, Kept: 1},
			Anchors:      map[review.Anchor]int{review.AnchorFile: 1, review.AnchorAdded: 4},
			Dropped:      map[review.DropReason]int{review.DropMinor: 2, review.DropUnknownPath: 1},
			FixesDropped: map[review.DropReason]int{review.DropFixSyntax: 1},
			Check:        &review.Check{Checked: 3, Removed: 1, Failed: 2, Why: "RATE_LIMITED"},
			Switches:     []review.Switch{{From: "m-1", To: "m-2", Why: "CONTENT_POLICY", Calls: 1}},
			Cost:         &review.Cost{Amount: 0.0021, Currency: "USD"},
		},
		Deliveries: []store.OutboxEntry{delivery}, DeadLetters: []deadLetterView{letter}, temporalAsked: true,
	}
	var out strings.Builder
	v.print(&out)
	out.WriteString("---\n")
	letter.printDetails(&out)
	out.WriteString("---\n")
	deliveryView{delivery, []string{"b96808567d8f2ea3d8d8a7afc2926fcd"}, nil, trail}.print(&out)
	const golden = "testdata/review.golden"
	if *update {
		testkit.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o600))
	}
	if want, err := os.ReadFile(golden); err != nil || out.String() != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
