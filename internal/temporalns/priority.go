package temporalns

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// priorityPatience bounds the question whether priorities are kept.
const priorityPatience = 10 * time.Second

// leastPriority is that of work which waits for all other.
const leastPriority = 5

// KeepsPriorities reports whether the server hands out tasks by their priority. It
// has no call that tells; so a task of low priority is put on a queue that nobody
// else knows, and it is looked where it waits.
func (n Namespace) KeepsPriorities(ctx context.Context) (bool, error) {
	ctx, stop := context.WithTimeout(ctx, priorityPatience)
	defer stop()
	id := "criticizer-priorities-" + rand.Text()
	_, err := n.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: id, WorkflowRunTimeout: time.Minute, Priority: temporal.Priority{PriorityKey: leastPriority},
	}, "nobody runs this")
	if err != nil {
		return false, fmt.Errorf("start a workflow, to learn whether priorities are kept: %w", err)
	}
	defer n.forget(ctx, id)
	for {
		described, err := n.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: n.name, TaskQueue: &taskqueuepb.TaskQueue{Name: id}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW, ReportStats: true,
		})
		if err != nil {
			return false, fmt.Errorf("describe task queue %s: %w", id, err)
		}
		if described.GetStats().GetApproximateBacklogCount() > 0 {
			return described.GetStatsByPriorityKey()[leastPriority].GetApproximateBacklogCount() > 0, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("learn whether priorities are kept: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// forget deletes a workflow. What is left of it ends by its timeout.
func (n Namespace) forget(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	_, _ = n.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: n.name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
}
