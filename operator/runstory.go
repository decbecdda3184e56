package main

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/criticizer/criticizer/internal/failure"
)

// A runStory is the current run of a review, as Temporal has it.
type runStory struct {
	ID         string        `json:"run_id"`
	Status     string        `json:"status"`
	Activities []activityRow `json:"activities"`
}

// An activityRow is what became of the last call of one of the activities that
// make up the stages.
type activityRow struct {
	Name    string `json:"name"`
	State   string `json:"state"` // waiting, running, done, failed, timed_out or canceled
	Attempt int    `json:"attempt"`
}

func (a activityRow) line() string {
	return fmt.Sprintf("%-8s %s, attempt %d", a.Name, a.State, a.Attempt)
}

// stageActivities are the fixed ids of the stages' activities, in order.
var stageActivities = []string{"fetch", "redact", "critique", "notify"}

// story reads the newest run of a workflow; the error is errForgotten if there
// is none.
func (r runs) story(ctx context.Context, workflowID string) (*runStory, error) {
	described, err := r.DescribeWorkflowExecution(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil, errForgotten
	}
	if err != nil {
		return nil, failure.Errorf(failure.NetworkUnreachable, "ask Temporal about %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	last := map[string]activityRow{}
	byEvent := map[int64]string{} // the activity that an event scheduled
	events := r.GetWorkflowHistory(ctx, workflowID, info.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, failure.Errorf(failure.NetworkUnreachable, "read history of %s: %w", workflowID, err)
		}
		follow(event, last, byEvent)
	}
	for _, p := range described.GetPendingActivities() {
		last[p.GetActivityId()] = pendingRow(p)
	}
	s := &runStory{ID: info.GetExecution().GetRunId(), Status: info.GetStatus().String(), Activities: []activityRow{}}
	for _, id := range stageActivities {
		if row, ok := last[id]; ok {
			s.Activities = append(s.Activities, row)
		}
	}
	return s, nil
}

// follow notes what one event says about an activity.
func follow(event *historypb.HistoryEvent, last map[string]activityRow, byEvent map[int64]string) {
	if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
		byEvent[event.GetEventId()] = scheduled.GetActivityId()
		last[scheduled.GetActivityId()] = activityRow{Name: scheduled.GetActivityId(), State: "waiting"}
		return
	}
	if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
		id := byEvent[started.GetScheduledEventId()]
		last[id] = activityRow{Name: id, State: "running", Attempt: int(started.GetAttempt())}
		return
	}
	var scheduled int64
	var state string
	switch event.GetEventType() {
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
	row := last[byEvent[scheduled]]
	row.State = state
	last[byEvent[scheduled]] = row
}

// pendingRow is an activity between its first attempt and its end, which its
// history does not show.
func pendingRow(p *workflowpb.PendingActivityInfo) activityRow {
	state := "waiting"
	if p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
		state = "running"
	}
	if p.GetPaused() {
		state = "paused"
	}
	return activityRow{Name: p.GetActivityId(), State: state, Attempt: int(p.GetAttempt())}
}
