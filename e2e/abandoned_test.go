package e2e

import (
	"context"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// If an operator terminates, cancels or deletes the run of a replay, its dead letter is
// open again with a note, and a later replay can resolve it (processing 8.5: the dead
// letter stays open until the review succeeds).
func TestAbandonedReplayReopensDeadLetter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end     func(ctx context.Context, in *installation, id string) error
		note    string
		deleted bool // Temporal has no run to reset
	}{
		"terminated": {
			end: func(ctx context.Context, in *installation, id string) error {
				return in.namespace.TerminateWorkflow(ctx, id, "", "wrong one")
			},
			note: "is terminated",
		},
		"canceled": {
			end: func(ctx context.Context, in *installation, id string) error {
				return in.namespace.CancelWorkflow(ctx, id, "")
			},
			note: "is canceled",
		},
		"deleted, as by retention": {
			end: func(ctx context.Context, in *installation, id string) error {
				_, err := in.namespace.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
					Namespace: in.temporal.Name, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
				})
				return err
			},
			note:    "its run is unknown to Temporal",
			deleted: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
			in.startWorker()
			in.rejectKey(1)
			id := in.deadLetter("1", failure.AuthDenied)
			in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
			in.criticizer("deadletter", "replay", "1", "--reason", "INC-42: key renewed")
			waitFor(t, "the model call of the replay", func() bool { return in.model.Stats().Calls == 2 })
			before := in.calls(1)
			if err := tt.end(t.Context(), in, id); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the reopened dead letter", func() bool { return in.countRows("dead_letters", `state = 'open'`) == 1 })
			var shown struct {
				Trail []struct {
					Action string
					Detail struct{ Note string }
				}
			}
			in.criticizerJSON(&shown, "deadletter", "show", "1")
			if last := shown.Trail[len(shown.Trail)-1]; last.Action != "reopen" || !strings.HasSuffix(last.Detail.Note, tt.note) {
				t.Errorf("the last audit entry is %+v, want reopen with a note that ends in %q", last, tt.note)
			}
			if n := in.countRows("jobs", `state = 'dead_lettered'`); n != 1 {
				t.Errorf("%d jobs are dead-lettered, want 1", n)
			}
			again := in.execute(nil, "operator", "deadletter", "replay", "1", "--reason", "INC-42: again")
			if tt.deleted {
				if !again.hasError("criticizer", exitFailed) {
					t.Errorf("replay of a deleted run: %+v", again)
				}
				return
			}
			waitFor(t, "the end of the second replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
			after := in.calls(1)
			if after.p4 != before.p4 || after.model != before.model+1 || after.mails != 1 {
				t.Errorf("calls %+v before and %+v after the second replay", before, after)
			}
			if n := in.countRows("dead_letters", `state = 'resolved'`); n != 1 {
				t.Errorf("%d dead letters are resolved, want 1", n)
			}
		})
	}
}
