package temporalns

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/workflows"
)

// QueueLimit returns the limit on the activities of a task queue that was set
// by a breaker or with temporal task-queue config; workers' limits are not told.
func (n Namespace) QueueLimit(ctx context.Context, queue string) (activities.QueueLimit, error) {
	state, err := n.QueueState(ctx, queue)
	return state.Limit, err
}

// A QueueState is how the tasks of a queue get on: activities and, where workflows
// are served, the next steps of workflows.
type QueueState struct {
	Limit   activities.QueueLimit
	Waiting int64         // how many wait for a worker, roughly
	Oldest  time.Duration // how long the oldest of them has waited
}

// QueueState returns what Temporal knows of a task queue.
func (n Namespace) QueueState(ctx context.Context, queue string) (QueueState, error) {
	described, err := n.describeStats(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return QueueState{}, err
	}
	state := QueueState{
		Waiting: described.GetStats().GetApproximateBacklogCount(),
		Oldest:  described.GetStats().GetApproximateBacklogAge().AsDuration(),
	}
	if queue == activities.QueueBookkeeping {
		steps, err := n.describeStats(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			return QueueState{}, err
		}
		state.Waiting += steps.GetStats().GetApproximateBacklogCount()
		state.Oldest = max(state.Oldest, steps.GetStats().GetApproximateBacklogAge().AsDuration())
	}
	limit := described.GetConfig().GetQueueRateLimit()
	if limit.GetRateLimit() == nil {
		return state, nil
	}
	about := limit.GetMetadata()
	state.Limit = activities.QueueLimit{
		PerSecond: &limit.RateLimit.RequestsPerSecond,
		By:        about.GetUpdateIdentity(),
		Reason:    about.GetReason(),
		Since:     about.GetUpdateTime().AsTime(),
	}
	return state, nil
}

func (n Namespace) describeStats(ctx context.Context, queue string, of enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return n.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     n.name,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: queue},
		TaskQueueType: of,
		ReportConfig:  true,
		ReportStats:   true,
	})
}

// LimitQueue sets the limit on the activities of a task queue. All partitions
// of the queue obey within a fraction of a second. Servers before 1.29 cannot.
func (n Namespace) LimitQueue(ctx context.Context, queue string, limit activities.QueueLimit) error {
	update := &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: limit.Reason}
	if limit.PerSecond != nil {
		update.RateLimit = &taskqueuepb.RateLimit{RequestsPerSecond: *limit.PerSecond}
	}
	_, err := n.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace:            n.name,
		Identity:             limit.By,
		TaskQueue:            queue,
		TaskQueueType:        enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		UpdateQueueRateLimit: update,
	})
	return err
}

// Breaker orders a task queue to stand still. It fills in order.Before. A server
// that cannot limit task queues is an error, for the order would wait forever.
func (n Namespace) OpenBreaker(ctx context.Context, queue string, order activities.BreakerOrder) error {
	if err := n.canLimit(ctx, queue); err != nil {
		return err
	}
	before, err := n.QueueLimit(ctx, queue)
	if err != nil {
		return fmt.Errorf("read limit of task queue %s: %w", queue, err)
	}
	if !before.OfBreaker() { // else it is on, or was left by a breaker that was terminated
		order.Before = before
	}
	_, err = n.SignalWithStartWorkflow(ctx, workflows.BreakerID(queue), workflows.SignalOpen, order, client.StartWorkflowOptions{
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Outage breaker of task queue " + queue,
	}, workflows.CircuitBreaker, queue)
	if err != nil {
		return fmt.Errorf("breaker task queue %s: %w", queue, err)
	}
	return nil
}

// canLimit asks the server for an update that changes nothing.
func (n Namespace) canLimit(ctx context.Context, queue string) error {
	_, err := n.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace: n.name, TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
	})
	if _, unknown := errors.AsType[*serviceerror.Unimplemented](err); unknown {
		return failure.Errorf(failure.ConfigInvalid, "breaker task queue %s: the Temporal server cannot limit task queues: it needs version 1.29", queue)
	}
	if err != nil {
		return fmt.Errorf("breaker task queue %s: %w", queue, err)
	}
	return nil
}

// A BreakerState is what is known about the breaker of a task queue.
type BreakerState struct {
	Running bool                  // somebody has pulled it and it is not over
	Probes  int                   // of the endpoint since it was pulled
	Limit   activities.QueueLimit // the queue's, whoever set it
}

// Easing reports whether the breaker lets a trickle through.
func (s BreakerState) Easing() bool { return s.Limit.OfBreaker() && !s.Limit.Standstill() }

// BreakerOf returns the state of a queue's breaker.
func (n Namespace) BreakerOf(ctx context.Context, queue string) (BreakerState, error) {
	limit, err := n.QueueLimit(ctx, queue)
	if err != nil {
		return BreakerState{}, fmt.Errorf("read limit of task queue %s: %w", queue, err)
	}
	state := BreakerState{Limit: limit}
	described, err := n.DescribeWorkflowExecution(ctx, workflows.BreakerID(queue), "")
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return state, nil
	}
	if err != nil {
		return BreakerState{}, fmt.Errorf("look at the breaker of task queue %s: %w", queue, err)
	}
	state.Running = described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityId() == workflows.ProbeID {
			state.Probes = int(pending.GetAttempt())
		}
	}
	return state, nil
}

// CloseBreaker lets a task queue run again: through its breaker if that is on, else
// by lifting the limit that an operator or a breaker that was terminated has left.
func (n Namespace) CloseBreaker(ctx context.Context, queue string) error {
	err := n.SignalWorkflow(ctx, workflows.BreakerID(queue), "", workflows.SignalClose, nil)
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		err = n.LimitQueue(ctx, queue, activities.QueueLimit{})
	}
	if err != nil {
		return fmt.Errorf("release task queue %s: %w", queue, err)
	}
	return nil
}
