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

// Criticizer-processing 8.5: a replay that somebody ends by hand leaves its
// letter open, with a note, and the next replay goes on where that one was.
func TestReplayEndedByHandOpensItsLetter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(ctx context.Context, in *installation, id string) error
		note string
		// gone: there is nothing left to replay
		gone bool
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
			note: "unknown to Temporal",
			gone: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
			in.startWorker()
			in.rejectKey(1)
			id := in.deadLetter("1", failure.AuthDenied)
			if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1}); err != nil {
				t.Fatal(err)
			}
			in.criticizer("deadletter", "replay", "1", "--reason", "INC-42: key renewed")
			waitFor(t, "the model call of the replay", func() bool { return in.model.Stats().Calls == 2 })
			before := in.calls(1)
			if err := tt.end(t.Context(), in, id); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the letter to be open again", func() bool { return in.countRows("dead_letters", `state = 'open'`) == 1 })
			if shown := in.criticizer("deadletter", "show", "1"); !strings.Contains(shown, tt.note) {
				t.Errorf("show does not say how the replay ended:\n%s", shown)
			}
			if n := in.countRows("jobs", `state = 'dead_lettered'`); n != 1 {
				t.Errorf("%d jobs are dead-lettered, want 1", n)
			}
			if tt.gone {
				in.refused("not known to Temporal", "deadletter", "replay", "1", "--reason", "INC-42: again")
				return
			}
			in.criticizer("deadletter", "replay", "1", "--reason", "INC-42: again")
			waitFor(t, "the end of the second replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
			after := in.calls(1)
			if after.p4 != before.p4 || after.model != before.model+1 || after.mails != 1 {
				t.Errorf("calls %+v before and %+v after the second replay", before, after)
			}
			if n := in.countRows("dead_letters", `state = 'resolved'`); n != 1 {
				t.Errorf("%d letters are resolved, want 1", n)
			}
		})
	}
}
