package main

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/store"
)

// runs reads and resets workflow runs.
type runs struct{ temporal.Namespace }

// errForgotten means that Temporal does not know a workflow: it never ran, or its
// retention has ended.
var errForgotten = errors.New("the workflow is not known to Temporal")

// A runView is the current run of a review.
type runView struct {
	ID         string             `json:"run_id"`
	Status     string             `json:"status"`
	Activities []temporal.Pending `json:"activities,omitempty"` // that have not ended

	closed bool
}

// current describes the newest run of a workflow. The error is errForgotten if there is none.
func (r runs) current(ctx context.Context, workflowID string) (runView, error) {
	described, err := r.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return runView{}, errForgotten
	}
	if err != nil {
		return runView{}, failure.Errorf(failure.NetworkUnreachable, "describe workflow %s: %w", workflowID, err)
	}
	info := described.RawResponse.GetWorkflowExecutionInfo()
	view := runView{ID: info.GetExecution().GetRunId(), Status: info.GetStatus().String(), closed: !temporal.IsOpen(info.GetStatus())}
	if !view.closed {
		view.Activities = r.PendingOf(ctx, described.RawResponse)
	}
	return view, nil
}

// reset replays a dead letter: it resets the run to the last workflow task, which
// runs the failed stage again, or to the first, which runs all stages. If the run was
// canceled, the last is the one before the cancellation. A server that deduplicates resets
// does so by the ID of the request.
func (r runs) reset(ctx context.Context, letter store.DeadLetter, request store.ReplayRequest) (newRunID string, err error) {
	var first, last int64
	err = r.EachEvent(ctx, letter.WorkflowID, letter.RunID, func(event *historypb.HistoryEvent) bool {
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
			return false
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			last = event.GetEventId()
			if first == 0 {
				first = last
			}
		}
		return true
	})
	if err != nil {
		return "", err
	}
	to := last
	if request.Full {
		to = first
	}
	response, err := r.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 r.Name,
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: letter.WorkflowID, RunId: letter.RunID},
		Reason:                    request.Reason,
		Identity:                  request.Who,
		RequestId:                 fmt.Sprintf("criticizer-replay-%d", request.ID),
		WorkflowTaskFinishEventId: to,
	})
	if err != nil {
		return "", failure.Errorf(failure.NetworkUnreachable, "reset run %s: %w", letter.RunID, err)
	}
	return response.GetRunId(), nil
}
