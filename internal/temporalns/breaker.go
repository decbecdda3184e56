package temporalns

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// LimitOf returns the limit of a task queue.
func (n Namespace) LimitOf(ctx context.Context, queue string) (activities.QueueLimit, error) {
	state, err := n.QueueState(ctx, queue)
	return state.Limit, err
}

// OpenBreaker opens the circuit breaker of a task queue. If the server cannot limit task
// queues it fails, because no workflow would ever execute the order.
func (n Namespace) OpenBreaker(ctx context.Context, queue string, order activities.BreakerOrder) error {
	return n.startBreaker(ctx, queue, workflows.SignalOpen, order)
}

// ReportResults reports results of a worker to the circuit breaker of a task queue. If
// start is set it starts the breaker; else running is false if none runs.
func (n Namespace) ReportResults(ctx context.Context, queue string, r activities.Results, start bool) (running bool, err error) {
	if start {
		return true, n.startBreaker(ctx, queue, workflows.SignalResults, r)
	}
	err = n.SignalWorkflow(ctx, workflows.BreakerID(queue), "", workflows.SignalResults, r)
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return false, nil
	}
	return err == nil, err
}

// startBreaker signals the circuit breaker of a task queue, or starts it with the signal.
func (n Namespace) startBreaker(ctx context.Context, queue, signal string, arg any) error {
	if err := n.updateQueue(ctx, queue, "", nil); err != nil {
		return err
	}
	_, err := n.SignalWithStartWorkflow(ctx, workflows.BreakerID(queue), signal, arg, client.StartWorkflowOptions{
		TaskQueue:     activities.QueueBookkeeping,
		StaticSummary: "Circuit breaker of task queue " + queue,
	}, workflows.CircuitBreaker, queue, workflows.BreakerState{})
	if err != nil {
		return fmt.Errorf("signal circuit breaker of task queue %s: %w", queue, err)
	}
	return nil
}

// A BreakerStatus is the status of a task queue's circuit breaker.
type BreakerStatus struct {
	Running bool                  // its workflow runs
	Probes  int                   // of the endpoint since it opened
	Limit   activities.QueueLimit // the queue's limit, whether or not the breaker set it
}

// BreakerOf returns the status of a task queue's circuit breaker.
func (n Namespace) BreakerOf(ctx context.Context, queue string) (BreakerStatus, error) {
	limit, err := n.LimitOf(ctx, queue)
	if err != nil {
		return BreakerStatus{}, err
	}
	status := BreakerStatus{Limit: limit}
	described, err := n.DescribeWorkflowExecution(ctx, workflows.BreakerID(queue), "")
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return status, nil
	}
	if err != nil {
		return BreakerStatus{}, fmt.Errorf("describe circuit breaker of task queue %s: %w", queue, err)
	}
	status.Running = described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	for _, pending := range described.GetPendingActivities() {
		if strings.HasPrefix(pending.GetActivityId(), workflows.ProbeID) {
			status.Probes = int(pending.GetAttempt())
		}
	}
	return status, nil
}

// CloseBreaker closes a task queue's circuit breaker. If none runs, it removes the limit
// that an operator or a terminated breaker left, and restores the one before it.
func (n Namespace) CloseBreaker(ctx context.Context, queue string) error {
	err := n.SignalWorkflow(ctx, workflows.BreakerID(queue), "", workflows.SignalClose, nil)
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		limit, err := n.LimitOf(ctx, queue)
		if err != nil {
			return err
		}
		before := activities.QueueLimit{}
		if limit.OfBreaker() {
			before = limit.Before()
		}
		return n.LimitQueue(ctx, queue, before)
	}
	if err != nil {
		return fmt.Errorf("close circuit breaker of task queue %s: %w", queue, err)
	}
	return nil
}
