package temporal

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// A QueueState is the state of a task queue.
type QueueState struct {
	Waiting int64         // approximate number of tasks
	Oldest  time.Duration // how long the oldest task has waited
}

// QueueState returns the state of a task queue: of its activities and, with workflows, of its
// workflow tasks.
func (n Namespace) QueueState(ctx context.Context, queue string, workflows bool) (QueueState, error) {
	described, err := n.describeStats(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return QueueState{}, err
	}
	state := QueueState{
		Waiting: described.GetStats().GetApproximateBacklogCount(),
		Oldest:  described.GetStats().GetApproximateBacklogAge().AsDuration(),
	}
	if workflows {
		steps, err := n.describeStats(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			return QueueState{}, err
		}
		state.Waiting += steps.GetStats().GetApproximateBacklogCount()
		state.Oldest = max(state.Oldest, steps.GetStats().GetApproximateBacklogAge().AsDuration())
	}
	return state, nil
}

func (n Namespace) describeStats(ctx context.Context, queue string, of enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	described, err := n.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     n.Name,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: queue},
		TaskQueueType: of,
		ReportStats:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	return described, nil
}
