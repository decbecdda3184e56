package e2e

import (
	"testing"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A change that a rule skips costs no model call and no mail. Its outcome is recorded
// with the rule. Catch-up starts reviews that no trigger started, repeats no review, and skips
// changes older than the installation.
func TestSkippedChangeAndCatchUp(t *testing.T) {
	t.Parallel()
	depot := newDepot(t, map[string]string{"gen/a.go": faulty}, map[string]string{"gen/b.go": faulty, "src/b.go": faulty}, map[string]string{"old.go": clean})
	in := newInstallation(t, depot)
	in.env = append(in.env, "CRITICIZER_SKIP_PATHS=//depot/gen/...")
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded || a.Outcome != review.OutcomeNotReviewed {
		t.Errorf("the skipped change ended as %+v", a)
	}
	if c := in.calls(1); c.model != 0 || c.mails != 0 {
		t.Errorf("the skipped change cost %d model calls and %d mails", c.model, c.mails)
	}
	if n := in.countRows("jobs", "changelist_id = 1 and skipped_by like '%"+string(review.SkipRulePaths)+"%'"); n != 1 {
		t.Errorf("%d jobs record the rule %s, want 1", n, review.SkipRulePaths)
	}
	run, err := in.namespace.DescribeWorkflow(t.Context(), review.DefaultKey("p4", 1, 1), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := run.TypedSearchAttributes.GetKeyword(contract.AttributeOutcome); got != string(review.OutcomeNotReviewed) {
		t.Errorf("the search attribute of the outcome is %q", got)
	}
	if a := in.mustStart("--wait", "2"); a.Outcome != review.OutcomeFindings {
		t.Errorf("a change with one file elsewhere ended as %+v", a)
	}
	waitFor(t, "the first mark", func() bool { return in.countRows("catch_up", "mark = 3") == 1 })
	commit(t, depot, manyChanges(3)...)
	in.mustStart("5")
	in.catchUp()
	in.waitForJobs(5)
	waitFor(t, "the mark", func() bool { return in.countRows("catch_up", "since = 3 and mark = 6") == 1 })
	in.catchUp()
	if n := in.countRows("jobs", "state = 'succeeded' and changelist_id in (1, 2, 4, 5, 6)"); n != 5 || in.countRows("jobs", "true") != 5 {
		t.Errorf("%d of 5 changes were reviewed, %d reviews in all", n, in.countRows("jobs", "true"))
	}
}

// catchUp runs a catch-up and waits for its end.
func (in *installation) catchUp() {
	in.t.Helper()
	id := workflows.CatchUpSchedule + "-p4"
	waitFor(in.t, "the start of a catch-up", func() bool {
		_, started, err := in.namespace.Trigger(in.t.Context(), id)
		return err == nil && started
	})
	schedule := in.namespace.ScheduleClient().GetHandle(in.t.Context(), id)
	waitFor(in.t, "the end of a catch-up", func() bool {
		described, err := schedule.Describe(in.t.Context())
		return err == nil && len(described.Info.RunningWorkflows) == 0
	})
}
