package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

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
