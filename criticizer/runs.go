package main

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/store"
)

// runs reads and resets workflow runs.
type runs struct {
	temporal.Namespace
	name string
}

// errForgotten means that Temporal does not know a workflow: it never ran, or its
// retention has ended.
var errForgotten = errors.New("the workflow is not known to Temporal")

// A runView is the current run of a review.
type runView struct {
	ID         string         `json:"run_id"`
	Status     string         `json:"status"`
	Activities []activityView `json:"activities,omitempty"`

	closed bool
}

// An activityView is the last call of one of the activities that make up the stages.
type activityView struct {
	Name    string `json:"name"`
	State   string `json:"state"` // waiting, running, paused, done, failed, timed_out or canceled
	Attempt int    `json:"attempt"`
}

// stageActivities are the activity IDs of the stages, in order.
var stageActivities = []string{"fetch", "redact", "llm", "notify"}

// current describes the newest run of a workflow without its activities. The
// error is errForgotten if there is none.
func (r runs) current(ctx context.Context, workflowID string) (runView, error) {
	view, _, err := r.describe(ctx, workflowID)
	return view, err
}

func (r runs) describe(ctx context.Context, workflowID string) (runView, []*workflowpb.PendingActivityInfo, error) {
	described, err := r.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return runView{}, nil, errForgotten
	}
	if err != nil {
		return runView{}, nil, failure.Errorf(failure.NetworkUnreachable, "describe workflow %s: %w", workflowID, err)
	}
	info := described.RawResponse.GetWorkflowExecutionInfo()
	view := runView{ID: info.GetExecution().GetRunId(), Status: info.GetStatus().String(), closed: !temporal.IsOpen(info.GetStatus())}
	return view, described.RawResponse.GetPendingActivities(), nil
}

// withActivities is current with the activities of the stages.
func (r runs) withActivities(ctx context.Context, workflowID string) (*runView, error) {
	view, pending, err := r.describe(ctx, workflowID)
	if err != nil {
		return nil, err
	}
	last := map[string]activityView{}
	scheduledBy := map[int64]string{} // activity ID by the event that scheduled it
	err = r.EachEvent(ctx, workflowID, view.ID, func(event *historypb.HistoryEvent) bool {
		follow(event, last, scheduledBy)
		return true
	})
	for _, p := range pending {
		last[p.GetActivityId()] = pendingActivity(p)
	}
	for _, id := range stageActivities {
		if a, ok := last[id]; ok {
			view.Activities = append(view.Activities, a)
		}
	}
	return &view, err
}

// follow updates the activities by one event.
func follow(event *historypb.HistoryEvent, last map[string]activityView, scheduledBy map[int64]string) {
	var scheduled int64
	state, attempt := "", 0
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		scheduled, state = event.GetEventId(), "waiting"
		scheduledBy[scheduled] = event.GetActivityTaskScheduledEventAttributes().GetActivityId()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		started := event.GetActivityTaskStartedEventAttributes()
		scheduled, state, attempt = started.GetScheduledEventId(), "running", int(started.GetAttempt())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		scheduled, state = event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(), "done"
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		scheduled, state = event.GetActivityTaskFailedEventAttributes().GetScheduledEventId(), "failed"
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		scheduled, state = event.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(), "timed_out"
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		scheduled, state = event.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), "canceled"
	default:
		return
	}
	id := scheduledBy[scheduled]
	if attempt == 0 && state != "waiting" {
		attempt = last[id].Attempt
	}
	last[id] = activityView{id, state, attempt}
}

// pendingActivity describes an activity that has not closed: the history does
// not show its attempts.
func pendingActivity(p *workflowpb.PendingActivityInfo) activityView {
	state := "waiting"
	if p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
		state = "running"
	}
	if p.GetPaused() {
		state = "paused"
	}
	return activityView{p.GetActivityId(), state, int(p.GetAttempt())}
}

// reset replays a dead letter: it resets the run to the last workflow task, which
// runs the failed stage again, or to the first, which runs all stages. A server
// that deduplicates resets does so by the ID of the request.
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

// workflowTasks returns the first and the last completed workflow task of a failed
// run. If the run was canceled, the last is the one before the cancellation.
func (r runs) workflowTasks(ctx context.Context, letter store.DeadLetter) (first, last int64, err error) {
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
	return first, last, err
}
