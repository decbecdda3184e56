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

// UnequalPartitions reports whether workers poll partitions of a task queue to which the
// server writes no task. It then divides each rate limit by more partitions than use it.
// The server reports the number of write partitions; the read partitions show by their polls.
func (n Namespace) UnequalPartitions(ctx context.Context, queue string) (write int, unequal bool, err error) {
	listed, err := n.WorkflowService().ListTaskQueuePartitions(ctx, &workflowservice.ListTaskQueuePartitionsRequest{
		Namespace: n.name, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
	})
	if err != nil {
		return 0, false, fmt.Errorf("list partitions of task queue %s: %w", queue, err)
	}
	const more = 4 // the server's default is 4 read partitions
	write = len(listed.GetActivityTaskQueuePartitions())
	for i := write; i < write+more; i++ {
		described, err := n.DescribeTaskQueue(ctx, fmt.Sprintf("/_sys/%s/%d", queue, i), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return write, false, fmt.Errorf("describe partition %d of task queue %s: %w", i, queue, err)
		}
		if len(described.GetPollers()) > 0 {
			return write, true, nil
		}
	}
	return write, false, nil
}

// deleteWorkflow ignores errors: the workflow's run timeout ends it too.
func (n Namespace) deleteWorkflow(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	_, _ = n.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: n.name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
}
