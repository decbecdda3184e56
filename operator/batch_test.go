package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	batchpb "go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/criticizer/criticizer/review"
)

// everyDeadRun is the query that a careless operator may use.
const everyDeadRun = `ExecutionStatus="Failed"`

// Temporal's batch reset also resets the failed runs of reviews that were replayed
// before. These runs call no model and send no mail; open dead letters are replayed
// (processing 8.5.3).
func TestStockBatchResetDoesNoHarm(t *testing.T) {
	t.Parallel()
	for name, reset := range map[string]func(*environment){"by the API": (*environment).batchReset, "by the temporal command": (*environment).batchResetByCommand} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnvironment(t)
			s.review(1)            // never dead
			s.review(2, errDenied) // repaired at once
			s.must("deadletter", "replay", s.letterOf(2), "--reason", reason)
			s.ended(2)
			s.review(3, errDenied) // repaired at the second try
			s.world.Fail("Review", errDenied)
			s.must("deadletter", "replay", s.letterOf(3), "--reason", reason)
			s.ended(3)
			s.must("deadletter", "replay", s.letterOf(3), "--reason", reason)
			s.ended(3)
			s.review(4, errDenied) // open
			s.count(everyDeadRun, 4)
			calls, mails := s.world.Calls("Review"), s.world.Copies("alice@corp.test")
			reset(s)
			s.count(`ExecutionStatus="Running"`, 0)
			for cl := review.Changelist(1); cl <= 4; cl++ {
				s.ended(cl)
			}
			if n := s.world.Calls("Review") - calls; n != 1 {
				t.Errorf("the batch made %d model calls, want that of changelist 4 only", n)
			}
			if n := s.world.Copies("alice@corp.test") - mails; n != 1 {
				t.Errorf("the batch sent the author %d mails, want that of changelist 4 only", n)
			}
			if out := s.must("deadletter", "list"); out != "no dead letters\n" {
				t.Errorf("still waiting are\n%s", out)
			}
			contains(t, s.must("deadletter", "list", "--unexplained"), "2 v1", "3 v1", "4 v1")
		})
	}
}

// batchReset resets a batch as the Temporal UI does.
func (s *environment) batchReset() {
	s.t.Helper()
	job := "batch-" + s.t.Name()
	_, err := s.runs.WorkflowService().StartBatchOperation(s.t.Context(), &workflowservice.StartBatchOperationRequest{
		Namespace: s.runs.name, JobId: job, VisibilityQuery: everyDeadRun, Reason: "all of them",
		Operation: &workflowservice.StartBatchOperationRequest_ResetOperation{ResetOperation: &batchpb.BatchOperationReset{
			Identity: "ui", Options: &commonpb.ResetOptions{Target: &commonpb.ResetOptions_LastWorkflowTask{LastWorkflowTask: &emptypb.Empty{}}},
		}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.batchEnded(job)
}

func (s *environment) batchEnded(job string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		described, err := s.runs.WorkflowService().DescribeBatchOperation(s.t.Context(), &workflowservice.DescribeBatchOperationRequest{
			Namespace: s.runs.name, JobId: job,
		})
		if err == nil && described.GetState() == enumspb.BATCH_OPERATION_STATE_COMPLETED {
			if done := described.GetCompleteOperationCount(); done != 4 {
				s.t.Errorf("the batch reset %d runs and failed at %d, want 4 and 0", done, described.GetFailureOperationCount())
			}
			return
		}
	}
	s.t.Fatal("the batch does not end")
}

// batchResetByCommand resets a batch with the temporal command.
func (s *environment) batchResetByCommand() {
	s.t.Helper()
	temporal := temporalCommand(s.t)
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, temporal, "workflow", "reset", "--query", everyDeadRun, "--type", "LastWorkflowTask",
		"--reason", "all of them", "--yes", "--address", s.address, "--namespace", s.runs.name)
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("temporal: %v\n%s", err, out)
	}
	for ctx.Err() == nil { // the list is eventually consistent
		listed, err := s.runs.WorkflowService().ListBatchOperations(ctx, &workflowservice.ListBatchOperationsRequest{Namespace: s.runs.name})
		if err != nil {
			s.t.Fatal(err)
		}
		if batches := listed.GetOperationInfo(); len(batches) == 1 {
			s.batchEnded(batches[0].GetJobId())
			return
		}
	}
	s.t.Fatal("the batch is not listed")
}

// temporalCommand finds the temporal command, as the tests of package e2e do.
func temporalCommand(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CRITICIZER_TEST_TEMPORAL_COMMAND"), "temporal", "../build/bin/temporal"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("SKIPPED, NOTHING WAS TESTED: no temporal command on PATH or in build/bin; the same batch by the API is tested")
	return ""
}
