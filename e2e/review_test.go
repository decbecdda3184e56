package e2e

import (
	"strings"
	"testing"

	common "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// A changelist is reviewed and mailed once; a second start returns the first result
// (notification 6.2: the idempotency key admits one review). Two Perforce servers number
// their changelists alike: if they shared a database, a change of the second would count as
// reviewed, so it is refused.
func TestOneChangelistOneMail(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}, map[string]string{"a.go": faulty}))
	in.startWorker()
	got := in.mustStart("--wait", "2")
	if got.State != review.JobSucceeded || got.Outcome != review.OutcomeFindings || got.Findings == 0 || got.Duplicate {
		t.Fatalf("first start = %+v", got)
	}
	mails := in.mails(2)
	if len(mails) != 1 || mails[0].To[0] != "alice@corp.test" || !strings.HasPrefix(mails[0].Subject, "[criticizer] CL 2: 1 ") || !strings.HasSuffix(mails[0].Subject, " - Change number 2") {
		t.Fatalf("mails = %+v, want one to the author", mails)
	}
	again := in.mustStart("2")
	if !again.Duplicate || again.Outcome != got.Outcome || again.Findings != got.Findings || again.RunID != got.RunID {
		t.Errorf("second start = %+v, want the result of the first, %+v", again, got)
	}
	if calls := in.model.Stats().Calls; calls != 1 || len(in.mails(2)) != 1 {
		t.Errorf("%d model calls and %d mails after two starts, want one of each", calls, len(in.mails(2)))
	}
	r := in.execute(nil, "starter", "change-commit", "--server-id", "other", "--wait", "2")
	if r.status != exitFailed || !strings.Contains(r.stderr, string(failure.InputInvalid)) {
		t.Errorf("changelist 2 of another server: %+v", r)
	}
	in.checkReportFormats()
	in.checkRetention()
}

// A key that belongs to the review of another changelist starts nothing. The answer
// describes that review, whether Temporal still has it or only the database
// (notification 10.1).
func TestKeyOfAnotherChangelist(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(2)...))
	in.startWorker()
	owner := in.mustStart("--wait", "--key", "build-7", "1")
	refused := func(args ...string) {
		t.Helper()
		r := in.execute(nil, "starter", append([]string{"change-commit", "--json", "--timeout=1m", "--key", "build-7"}, args...)...)
		var a startResult
		in.decode(r, &a)
		if r.status != 3 || a.Changelist != 1 || a.State != review.JobSucceeded || a.Outcome != owner.Outcome || a.Findings != owner.Findings || !a.Duplicate {
			t.Errorf("%q: status %d, %+v, want 3 and the review of changelist 1", args, r.status, a)
		}
		for _, want := range []string{"no review of changelist 2 was started", "build-7", "changelist 1 version 1: succeeded"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("%q: the error lacks %q: %s", args, want, r.stderr)
			}
		}
	}
	refused("2")
	refused("--wait", "2")
	down := []string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}
	in.execute(down, "starter", "change-commit", "--key", "build-7", "2")
	if r := in.execute(nil, "starter", "drain"); r.status == exitOK || !strings.Contains(r.stderr, "set aside") {
		t.Errorf("the spooled request: %+v, want it set aside", r)
	}
	if _, err := in.namespace.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: in.temporal.Name, WorkflowExecution: &common.WorkflowExecution{WorkflowId: "build-7"},
	}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the review's retention", func() bool {
		_, err := in.namespace.DescribeWorkflow(t.Context(), "build-7", "")
		return err != nil
	})
	refused("--wait", "2")
	if n := in.countRows("jobs", "true"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}

// Only a strictly higher version of a review runs again. Its mail is in the thread of the
// earlier mail (notification 10.4).
func TestVersionedRerun(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	in.mustStart("--wait", "--review-version", "2", "1")
	earlier := in.mails(1)[0]
	if r := in.execute(nil, "starter", "change-commit", "--timeout=1m", "--wait", "--review-version", "1", "1"); r.status != exitFailed {
		t.Errorf("a lower version ended with %+v, want an error", r)
	}
	if n := in.countRows("dead_letters", "error_class = 'INPUT_INVALID' and review_version = 1 and state = 'open'"); n != 1 {
		t.Errorf("%d dead letters of the refused version, want 1", n)
	}
	if a := in.mustStart("--wait", "--review-version", "2", "--key", "another", "1"); !a.Duplicate {
		t.Errorf("the same version under another key = %+v, want a duplicate", a)
	}
	if a := in.mustStart("--wait", "--review-version", "3", "1"); a.Duplicate || a.State != review.JobSucceeded {
		t.Errorf("a higher version = %+v, want a new review", a)
	}
	mails := in.mails(1)
	if len(mails) != 2 || mails[1].ID != earlier.ID {
		t.Fatalf("mails = %+v, want one per version that ran, newest first", mails)
	}
	if id, replyTo := in.header(earlier, "References"), in.header(mails[0], "In-Reply-To"); replyTo != id || replyTo == "" || in.header(earlier, "In-Reply-To") != "" {
		t.Errorf("the second mail replies to %q, want %q", replyTo, id)
	}
}

// A crash neither loses nor duplicates a mail (notification 10.3). Here the worker is
// killed after the mail server accepted the message and before it replied.
func TestKilledWorkerSendsOnce(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	killed := make(chan struct{})
	defer close(killed)
	in.inbox.Inject(inbox.Fault{At: inbox.AtKept, Wait: func() { <-killed }})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the accepted mail", func() bool { return len(in.mails(1)) == 1 })
	kill(worker)
	in.startWorker()
	got := in.mustStart("--wait", "1")
	if got.State != review.JobSucceeded || len(in.mails(1)) != 1 {
		t.Errorf("after the crash: %+v with %d mails, want success and one", got, len(in.mails(1)))
	}
}
