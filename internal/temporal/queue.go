package temporal

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// A QueueState is the state of a task queue.
type QueueState struct {
	Waiting int64         // approximate number of tasks
	Oldest  time.Duration // how long the oldest task has waited
	Served  bool          // a worker has polled it in the last minutes
	Limited string        // the rate limit that an operator has set, by whom and why; empty: none
}

// Stuck says why tasks of the queue wait, or nothing.
func (q QueueState) Stuck() string {
	if !q.Served {
		return strings.TrimSpace("no worker serves its queue " + q.Limited)
	}
	return q.Limited
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
		Served:  len(described.GetPollers()) > 0,
	}
	if limit := described.GetConfig().GetQueueRateLimit(); limit.GetRateLimit() != nil {
		state.Limited = fmt.Sprintf("limited to %g tasks per second %s", limit.GetRateLimit().GetRequestsPerSecond(), byWhom(limit.GetMetadata().GetUpdateIdentity(), limit.GetMetadata().GetReason()))
	}
	if workflows {
		steps, err := n.describeStats(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			return QueueState{}, err
		}
		state.Waiting += steps.GetStats().GetApproximateBacklogCount()
		state.Oldest = max(state.Oldest, steps.GetStats().GetApproximateBacklogAge().AsDuration())
		state.Served = len(steps.GetPollers()) > 0
	}
	return state, nil
}

func (n Namespace) describeStats(ctx context.Context, queue string, of enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	described, err := n.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     n.Name,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: queue},
		TaskQueueType: of,
		ReportStats:   true,
		ReportConfig:  true,
	})
	if err != nil {
		return nil, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	return described, nil
}
