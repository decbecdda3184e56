package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// A change that a rule skips costs no model call and no mail, its end can be
// seen, and nothing starts it again.
func TestSkippedChange(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"gen/a.go": faulty}, map[string]string{"gen/b.go": faulty, "src/b.go": faulty}))
	in.env = append(in.env, "CRITICIZER_SKIP_PATHS=//depot/gen/...", "CRITICIZER_P4_CATCH_UP_EVERY=1s")
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded || a.Outcome != review.OutcomeNotReviewed {
		t.Errorf("the skipped change ended as %+v", a)
	}
	if seen := in.calls(1); seen.model != 0 || seen.mails != 0 {
		t.Errorf("the skipped change cost %d model calls and %d mails", seen.model, seen.mails)
	}
	if out := in.criticizer("status", "1"); !strings.Contains(out, string(review.SkipRulePaths)) {
		t.Errorf("status does not tell why:\n%s", out)
	}
	run, err := in.namespace.DescribeWorkflow(t.Context(), review.DefaultKey("p4", 1, 1), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := run.TypedSearchAttributes.GetKeyword(workflows.AttributeOutcome); got != string(review.OutcomeNotReviewed) {
		t.Errorf("the search attribute of the outcome is %q", got)
	}
	if a := in.mustStart("--wait", "2"); a.Outcome != review.OutcomeFindings {
		t.Errorf("a change with one file elsewhere ended as %+v", a)
	}
	time.Sleep(2 * time.Second) // some runs of catch-up
	if n := in.countRows("jobs", "true"); n != 2 {
		t.Errorf("there are %d reviews of 2 changes", n)
	}
}
