package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// ends are the ways in which an operator ends a run.
var ends = map[string]func(ctx context.Context, in *installation, id string) error{
	"terminated": func(ctx context.Context, in *installation, id string) error {
		return in.namespace.TerminateWorkflow(ctx, id, "", "wrong one")
	},
	"canceled": func(ctx context.Context, in *installation, id string) error {
		return in.namespace.CancelWorkflow(ctx, id, "")
	},
	"deleted": func(ctx context.Context, in *installation, id string) error { // as retention does
		_, err := in.namespace.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: in.temporal.Name, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
		})
		return err
	},
}

// The job of a review whose run an operator ends is canceled. It blocks no request of the
// spool. A reset continues it; if Temporal has deleted it, the same request starts it again.
func TestTerminatedReviewCloses(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(2*len(ends))...))
	in.startWorker()
	succeeded := func(changelist int) func() bool {
		return func() bool {
			return in.countRows("jobs", fmt.Sprintf("changelist_id = %d and state = 'succeeded'", changelist)) == 1
		}
	}
	names := slices.Sorted(maps.Keys(ends))
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = in.hangAtModel(fmt.Sprint(2*i + 1))
		if err := ends[name](t.Context(), in, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the canceled jobs", func() bool { return in.countRows("jobs", "state = 'canceled'") == len(ends) })
	for i, name := range names {
		ended := 2*i + 1
		for _, spooled := range []int{ended, ended + 1} {
			in.execute([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "starter", "change-commit", fmt.Sprint(spooled))
		}
		in.output("starter", "drain")
		waitFor(t, "the review after it in the spool", succeeded(ended+1))
		if name != "deleted" {
			if a := in.mustStart(fmt.Sprint(ended)); !a.Duplicate || a.State != review.JobCanceled {
				t.Errorf("%s, started again: %+v", name, a)
			}
		}
		switch name {
		case "canceled": // its last workflow task is part of the cancellation
			continue
		case "terminated":
			in.reset("LastWorkflowTask", "--workflow-id", ids[i])
		}
		waitFor(t, "the review", succeeded(ended))
		if n := len(in.mails(review.Changelist(ended))); n != 1 {
			t.Errorf("%s: %d mails, want one", name, n)
		}
	}
}

// A paused review has not ended: its job stays open while that of a terminated one closes, a
// spooled request for it is a duplicate that blocks no other, and it continues.
func TestPausedReviewStaysOpen(t *testing.T) {
	t.Parallel()
	if os.Getenv(serverVariable) == "" {
		t.Skipf("SKIPPED, the server cannot pause: %s is not set; make test-server sets it", serverVariable)
	}
	in := newInstallation(t, newDepot(t, manyChanges(3)...))
	in.startWorker("--roles", "workflows,fetch,redact")
	paused, terminated := in.mustStart("1").WorkflowID, in.mustStart("2").WorkflowID
	for _, id := range []string{paused, terminated} {
		waitFor(t, "stage llm", func() bool { return in.attempts(id, "llm") == 1 })
	}
	service := in.namespace.WorkflowService()
	if _, err := service.PauseWorkflowExecution(t.Context(), &workflowservice.PauseWorkflowExecutionRequest{
		Namespace: in.temporal.Name, WorkflowId: paused, Reason: "INC-42", RequestId: "1",
	}); err != nil {
		t.Fatal(err)
	}
	if err := in.namespace.TerminateWorkflow(t.Context(), terminated, "", "wrong one"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the canceled job", func() bool { return in.countRows("jobs", `state = 'canceled'`) == 1 })
	for _, changelist := range []string{"1", "3"} {
		in.execute([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "starter", "change-commit", changelist)
	}
	in.output("starter", "drain")
	if a := in.mustStart("1"); !a.Duplicate || a.State != review.JobInProgress {
		t.Errorf("started again: %+v", a)
	}
	in.startWorker("--roles", "llm,notify")
	waitFor(t, "the review after it in the spool", func() bool { return in.countRows("jobs", `changelist_id = 3 and state = 'succeeded'`) == 1 })
	if n := in.countRows("jobs", `changelist_id = 1 and state = 'in_progress'`); n != 1 {
		t.Errorf("%d paused reviews are in progress, want 1", n)
	}
	if _, err := service.UnpauseWorkflowExecution(t.Context(), &workflowservice.UnpauseWorkflowExecutionRequest{
		Namespace: in.temporal.Name, WorkflowId: paused, Reason: "INC-42", RequestId: "2",
	}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the review", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 2 })
	if len(in.mails(1)) != 1 {
		t.Errorf("%d mails, want one", len(in.mails(1)))
	}
}

// If an operator terminates, cancels or deletes the run of a replay, its dead letter is
// open again with a note, and a later replay can resolve it (processing 8.5: the dead
// letter stays open until the review succeeds).
func TestAbandonedReplayReopensDeadLetter(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(len(ends))...))
	in.disableBreaker()
	in.startWorker()
	names := slices.Sorted(maps.Keys(ends))
	for i, name := range names { // the ID of the dead letter is the changelist
		number := fmt.Sprint(i + 1)
		in.rejectKey(1)
		id := in.deadLetter(number, failure.AuthDenied)
		in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
		calls := in.model.Stats().Calls
		in.criticizer("deadletter", "replay", number, "--reason", "INC-42: key renewed")
		waitFor(t, "the model call of the replay", func() bool { return in.model.Stats().Calls == calls+1 })
		if err := ends[name](t.Context(), in, id); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the reopened dead letters", func() bool { return in.countRows("dead_letters", "state = 'open'") == len(ends) })
	for i, name := range names {
		changelist, number := review.Changelist(i+1), fmt.Sprint(i+1)
		before := in.calls(changelist)
		var shown struct {
			Trail []struct {
				Action string
				Detail struct{ Note string }
			}
		}
		in.criticizerJSON(&shown, "deadletter", "show", number)
		if last := shown.Trail[len(shown.Trail)-1]; last.Action != "reopen" || last.Detail.Note == "" {
			t.Errorf("%s: the last audit entry is %+v, want reopen with a note", name, last)
		}
		if n := in.countRows("jobs", "changelist_id = "+number+" and state = 'retryable_failed'"); n != 1 {
			t.Errorf("%s: %d jobs are dead-lettered, want 1", name, n)
		}
		again := in.execute(nil, "criticizer", "deadletter", "replay", number, "--reason", "INC-42: again")
		if name == "deleted" { // Temporal has no run to reset
			if !again.hasError("criticizer", exitFailed) {
				t.Errorf("replay of a deleted run: %+v", again)
			}
			continue
		}
		waitFor(t, "the end of the second replay", func() bool {
			return in.countRows("jobs", "changelist_id = "+number+" and state = 'succeeded'") == 1
		})
		after := in.calls(changelist)
		if after.p4 != before.p4 || after.model != before.model+1 || after.mails != 1 {
			t.Errorf("%s: calls %+v before and %+v after the second replay", name, before, after)
		}
		if n := in.countRows("dead_letters", "id = "+number+" and state = 'resolved'"); n != 1 {
			t.Errorf("%s: the dead letter is not resolved", name)
		}
	}
}
