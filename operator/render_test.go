package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

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
	letter := letterView{
		DeadLetter: store.DeadLetter{
			ID: 12, WorkflowID: "review-p4-4711-v2", RunID: "run-1", Changelist: 4711, Version: 2, State: store.LetterResolved, Unexplained: true,
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
		Run:  &runView{ID: "run-2", Status: "Completed", Activities: []activityView{{"fetch", "done", 1}, {"critique", "done", 2}}},
		Wait: &store.Wait{For: []string{"//depot/a/...", "//depot/b/..."}, Since: at},
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
		Deliveries: []store.OutboxEntry{delivery}, DeadLetters: []letterView{letter}, temporalAsked: true,
	}
	var out strings.Builder
	v.print(&out)
	out.WriteString("---\n")
	letter.printDetails(&out)
	out.WriteString("---\n")
	deliveryView{delivery, []string{"b96808567d8f2ea3d8d8a7afc2926fcd"}, trail}.print(&out)
	const golden = "testdata/review.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || out.String() != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
