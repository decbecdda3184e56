package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
)

// IsOpen reports whether a run in this state is open. A paused run is open.
func IsOpen(status enumspb.WorkflowExecutionStatus) bool {
	return status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
}

// EndOf returns how the newest run of a workflow ended, such as "run 1234 was terminated by
// olga@desk: INC-7"; it is empty while the run is open. A workflow that Temporal does not know has
// ended.
func (n Namespace) EndOf(ctx context.Context, workflowID string) (how string, err error) {
	described, err := n.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return "its run is unknown to Temporal", nil
	}
	if err != nil {
		return "", fmt.Errorf("describe workflow %s: %w", workflowID, err)
	}
	if IsOpen(described.Status) {
		return "", nil
	}
	run := described.WorkflowExecution.RunID
	if described.Status != enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
		return fmt.Sprintf("run %s is %s", run, strings.ToLower(described.Status.String())), nil
	}
	by := ""
	err = n.EachEvent(ctx, workflowID, run, func(event *historypb.HistoryEvent) bool {
		if ended := event.GetWorkflowExecutionTerminatedEventAttributes(); ended != nil {
			by = byWhom(ended.GetIdentity(), ended.GetReason())
		}
		return true
	})
	return fmt.Sprintf("run %s was terminated %s", run, by), err
}

// CanceledBy returns who requested the cancellation of a run, and why.
func (n Namespace) CanceledBy(ctx context.Context, workflowID, runID string) (by string, err error) {
	err = n.EachEvent(ctx, workflowID, runID, func(event *historypb.HistoryEvent) bool {
		if asked := event.GetWorkflowExecutionCancelRequestedEventAttributes(); asked != nil {
			by = byWhom(asked.GetIdentity(), asked.GetCause())
		}
		return true
	})
	return by, err
}

func byWhom(identity, reason string) string {
	return "by " + cmp.Or(identity, "an unknown person") + ": " + cmp.Or(reason, "no reason given")
}

// ResetOf returns who made the run by a reset and why, from its history; both are empty if
// no reset made it.
func (n Namespace) ResetOf(ctx context.Context, workflowID, runID string) (identity, reason string, err error) {
	err = n.EachEvent(ctx, workflowID, runID, func(event *historypb.HistoryEvent) bool {
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			identity, reason = failed.GetIdentity(), failed.GetFailure().GetMessage()
		}
		return true
	})
	return identity, reason, err
}

// A Pending is an activity of a run that has not ended, or the run's next step.
type Pending struct {
	Name    string `json:"name"`
	State   string `json:"state"` // waiting, running or paused
	Attempt int    `json:"attempt"`
	// Class and Error are those of the last attempt, empty if none has failed; Next is when the
	// next attempt begins, if it waits for one.
	Class string     `json:"error_class,omitempty"`
	Error string     `json:"error,omitempty"`
	Next  *time.Time `json:"next_attempt_at,omitempty"`
	// Stuck says what keeps the workers from it, if anything.
	Stuck string `json:"stuck,omitempty"`
}

// String says what the activity does or waits for, in one line.
func (p Pending) String() string {
	text := fmt.Sprintf("%s: %s, attempt %d", p.Name, p.State, p.Attempt)
	if p.Error != "" {
		first, _, _ := strings.Cut(p.Error, "\n")
		text += fmt.Sprintf(", after %s: %s", p.Class, first)
	}
	if p.Next != nil {
		text += ", next at " + p.Next.UTC().Format("2006-01-02 15:04:05Z")
	}
	if p.Stuck != "" {
		text += ", " + p.Stuck
	}
	return text
}

// PendingOf returns what a run does or waits for. Stuck is empty if its
// queue cannot be described.
func (n Namespace) PendingOf(ctx context.Context, described *workflowservice.DescribeWorkflowExecutionResponse) (all []Pending) {
	for _, a := range described.GetPendingActivities() {
		p := Pending{Name: a.GetActivityId(), State: "waiting", Attempt: int(a.GetAttempt()),
			Class: a.GetLastFailure().GetApplicationFailureInfo().GetType(), Error: a.GetLastFailure().GetMessage()}
		switch {
		case a.GetPaused():
			p.State = "paused"
		case a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED:
			p.State = "running"
		default:
			if a.GetNextAttemptScheduleTime() != nil {
				p.Next = new(a.GetNextAttemptScheduleTime().AsTime())
			}
			if queue := a.GetActivityOptions().GetTaskQueue().GetName(); queue != "" {
				state, err := n.QueueState(ctx, queue, false)
				if err == nil {
					p.Stuck = state.Stuck()
				}
			}
		}
		all = append(all, p)
	}
	if task := described.GetPendingWorkflowTask(); task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && len(all) == 0 {
		state, err := n.QueueState(ctx, described.GetExecutionConfig().GetTaskQueue().GetName(), true)
		if err == nil {
			all = append(all, Pending{Name: "next step", State: "waiting", Attempt: int(task.GetAttempt()), Stuck: state.Stuck()})
		}
	}
	return all
}

// EachEvent calls see with the events of a run until see returns false.
func (n Namespace) EachEvent(ctx context.Context, workflowID, runID string, see func(*historypb.HistoryEvent) bool) error {
	events := n.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return failure.Errorf(failure.NetworkUnreachable, "read history of run %s: %w", runID, err)
		}
		if !see(event) {
			break
		}
	}
	return nil
}
