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

// A QueueState is the state of a task queue: of its activities and, if it has workflows,
// of their workflow tasks.
type QueueState struct {
	Limit   activities.QueueLimit // of activities, for all workers together
	Waiting int64                 // approximate number of tasks
	Oldest  time.Duration         // how long the oldest task has waited
}

// QueueState returns the state of a task queue.
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
	set := limit.GetMetadata()
	state.Limit = activities.QueueLimit{
		PerSecond: &limit.RateLimit.RequestsPerSecond,
		By:        set.GetUpdateIdentity(),
		Reason:    set.GetReason(),
		Since:     set.GetUpdateTime().AsTime(),
	}
	return state, nil
}

func (n Namespace) describeStats(ctx context.Context, queue string, of enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	described, err := n.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     n.name,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: queue},
		TaskQueueType: of,
		ReportConfig:  true,
		ReportStats:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	return described, nil
}

// LimitQueue sets the limit on the activities of a task queue. All partitions of the queue
// apply it within a fraction of a second. It needs server version 1.29.
func (n Namespace) LimitQueue(ctx context.Context, queue string, limit activities.QueueLimit) error {
	update := &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: limit.Reason}
	if limit.PerSecond != nil {
		update.RateLimit = &taskqueuepb.RateLimit{RequestsPerSecond: *limit.PerSecond}
	}
	return n.updateQueue(ctx, queue, limit.By, update)
}

// updateQueue changes nothing if update is nil. The error has class CONFIG_INVALID if the
// server cannot limit task queues.
func (n Namespace) updateQueue(ctx context.Context, queue, by string, update *workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate) error {
	_, err := n.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace:            n.name,
		Identity:             by,
		TaskQueue:            queue,
		TaskQueueType:        enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		UpdateQueueRateLimit: update,
	})
	if _, unknown := errors.AsType[*serviceerror.Unimplemented](err); unknown {
		return failure.Errorf(failure.ConfigInvalid, "limit task queue %s: the Temporal server cannot limit task queues: it needs version 1.29", queue)
	}
	if err != nil {
		return fmt.Errorf("limit task queue %s: %w", queue, err)
	}
	return nil
}

// OpenBreaker opens the circuit breaker of a task queue. It sets order.Before. If the
// server cannot limit task queues it fails, because the order would wait forever.
func (n Namespace) OpenBreaker(ctx context.Context, queue string, order activities.BreakerOrder) error {
	if err := n.updateQueue(ctx, queue, "", nil); err != nil {
		return err
	}
	before, err := n.QueueState(ctx, queue)
	if err != nil {
		return err
	}
	if !before.Limit.OfBreaker() { // else it is open, or a terminated breaker left the limit
		order.Before = before.Limit
	}
	_, err = n.SignalWithStartWorkflow(ctx, workflows.BreakerID(queue), workflows.SignalOpen, order, client.StartWorkflowOptions{
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Circuit breaker of task queue " + queue,
	}, workflows.CircuitBreaker, queue)
	if err != nil {
		return fmt.Errorf("open circuit breaker of task queue %s: %w", queue, err)
	}
	return nil
}

// A BreakerState is the state of a task queue's circuit breaker.
type BreakerState struct {
	Running bool                  // its workflow runs: it is open or half-open, or opening
	Probes  int                   // of the endpoint since it opened
	Limit   activities.QueueLimit // the queue's limit, whether or not the breaker set it
}

// HalfOpen reports whether activities start at a low rate.
func (s BreakerState) HalfOpen() bool { return s.Limit.OfBreaker() && !s.Limit.Stopped() }

// BreakerOf returns the state of a task queue's circuit breaker.
func (n Namespace) BreakerOf(ctx context.Context, queue string) (BreakerState, error) {
	queueState, err := n.QueueState(ctx, queue)
	if err != nil {
		return BreakerState{}, err
	}
	state := BreakerState{Limit: queueState.Limit}
	described, err := n.DescribeWorkflowExecution(ctx, workflows.BreakerID(queue), "")
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return state, nil
	}
	if err != nil {
		return BreakerState{}, fmt.Errorf("describe circuit breaker of task queue %s: %w", queue, err)
	}
	state.Running = described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityId() == workflows.ProbeID {
			state.Probes = int(pending.GetAttempt())
		}
	}
	return state, nil
}

// CloseBreaker closes a task queue's circuit breaker. If none runs, it removes the limit
// that an operator or a terminated breaker left.
func (n Namespace) CloseBreaker(ctx context.Context, queue string) error {
	err := n.SignalWorkflow(ctx, workflows.BreakerID(queue), "", workflows.SignalClose, nil)
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return n.LimitQueue(ctx, queue, activities.QueueLimit{})
	}
	if err != nil {
		return fmt.Errorf("close circuit breaker of task queue %s: %w", queue, err)
	}
	return nil
}
