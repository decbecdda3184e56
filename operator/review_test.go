package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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
	if out := listed() + listed("--json"); strings.Contains(out, "@") || strings.Contains(out, "//depot") {
		t.Errorf("it shows an address or a path: %s", out)
	}
}

func TestReviewListRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"--state dead", `--state "dead": want in_progress, succeeded, dead_lettered or canceled`},
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
	reviewed := func(j review.Job, end *time.Time) store.RecentReview {
		j.Changelist, j.Version = 4711, 2
		return store.RecentReview{ReviewRow: store.ReviewRow{Job: j, CreatedAt: begun, FinishedAt: end}}
	}
	waits := reviewed(review.Job{State: review.JobInProgress}, nil)
	waits.AwaitsSlot, waits.Stage = true, review.StageLLM
	skipped := review.Job{State: review.JobSucceeded, Outcome: review.OutcomeNotReviewed, SkippedBy: review.SkipRuleNewer, Shelved: true}
	var out strings.Builder
	writeTable(&out, "", reviewTable.rows([]store.RecentReview{waits, reviewed(skipped, &ended)}))
	const want = `CHANGELIST  STATE        OUTCOME       FINDINGS  STARTED               TOOK          DETAIL
4711 v2     in_progress  -             -         %[1]s  1h00m so far  in stage llm; waits for a slot
4711 v2     succeeded    not_reviewed  0         %[1]s  1m            shelf; skipped: the changelist was shelved again before the review was over
`
	if want := fmt.Sprintf(want, stamp(begun)); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// A review by a stand-in does not look as if a model had approved the change.
func TestStandInIsNamed(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711)
	s.review(4712)
	if err := s.database.Open(t, store.RoleLLM).RecordReview(t.Context(), 4712, 1, review.Record{StandIn: true}); err != nil {
		t.Fatal(err)
	}
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
