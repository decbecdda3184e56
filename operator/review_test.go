package main

import (
	"encoding/json"
	"strings"
	"testing"

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
