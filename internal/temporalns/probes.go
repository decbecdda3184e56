package temporalns

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// lowestPriority is the last of the server's priorities, 1 to 5.
const lowestPriority = 5

// KeepsPriorities reports whether the server dispatches tasks by priority. The server has
// no call for that. So it probes: it enqueues a task of the lowest priority on a queue
// without workers and inspects the backlog.
func (n Namespace) KeepsPriorities(ctx context.Context) (bool, error) {
	const timeout = 10 * time.Second
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	id := "criticizer-priorities-" + rand.Text()
	_, err := n.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: id, WorkflowRunTimeout: time.Minute, Priority: temporal.Priority{PriorityKey: lowestPriority},
	}, "PriorityProbe")
	if err != nil {
		return false, fmt.Errorf("start workflow to probe priorities: %w", err)
	}
	defer n.deleteWorkflow(ctx, id)
	for {
		described, err := n.describeStats(ctx, id, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			return false, err
		}
		if described.GetStats().GetApproximateBacklogCount() > 0 {
			return described.GetStatsByPriorityKey()[lowestPriority].GetApproximateBacklogCount() > 0, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("probe priorities: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// deleteWorkflow ignores errors: the workflow's run timeout ends it too.
func (n Namespace) deleteWorkflow(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	_, _ = n.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: n.name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
}
