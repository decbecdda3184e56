package main

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/store"
)

// runs is what operators ask of Temporal.
type runs struct {
	temporalns.Namespace
	name string
}

// errForgotten says that Temporal no longer knows a workflow.
var errForgotten = errors.New("the workflow is not known to Temporal, or no longer")

// A currentRun is the newest run of a workflow.
type currentRun struct {
	id     string
	status enumspb.WorkflowExecutionStatus
}

func (r currentRun) closed() bool { return r.status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }

// current returns the newest run; the error is errForgotten if there is none.
func (r runs) current(ctx context.Context, workflowID string) (currentRun, error) {
	described, err := r.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return currentRun{}, errForgotten
	}
	if err != nil {
		return currentRun{}, failure.Errorf(failure.NetworkUnreachable, "ask Temporal about %s: %w", workflowID, err)
	}
	return currentRun{described.WorkflowExecution.RunID, described.Status}, nil
}

// reset replays the letter: to the last workflow task, which runs the failed
// stage again, or to the first, which runs all. The request's id goes with it,
// so that a server that can tell repeats apart does.
func (r runs) reset(ctx context.Context, letter store.DeadLetter, request store.ReplayRequest) (newRunID string, err error) {
	first, last, err := r.workflowTasks(ctx, letter)
	if err != nil {
		return "", err
	}
	to := last
	if request.Full {
		to = first
	}
	response, err := r.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 r.name,
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: letter.WorkflowID, RunId: letter.RunID},
		Reason:                    request.Evidence,
		Identity:                  request.Who,
		RequestId:                 fmt.Sprintf("criticizer-replay-%d", request.ID),
		WorkflowTaskFinishEventId: to,
	})
	if err != nil {
		return "", failure.Errorf(failure.NetworkUnreachable, "reset run %s: %w", letter.RunID, err)
	}
	return response.GetRunId(), nil
}

// workflowTasks finds the first and the last finished workflow task of a dead
// run. If somebody canceled the run, the last is the one before that.
func (r runs) workflowTasks(ctx context.Context, letter store.DeadLetter) (first, last int64, err error) {
	events := r.GetWorkflowHistory(ctx, letter.WorkflowID, letter.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return 0, 0, failure.Errorf(failure.NetworkUnreachable, "read history of run %s: %w", letter.RunID, err)
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED {
			break
		}
		if event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		last = event.GetEventId()
		if first == 0 {
			first = last
		}
	}
	return first, last, nil
}
