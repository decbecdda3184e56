package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
)

// Retention is how long the namespace keeps the history of a closed run.
func (n Namespace) Retention(ctx context.Context) (time.Duration, error) {
	answer, err := n.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: n.Name})
	if err != nil {
		return 0, fmt.Errorf("describe namespace %s: %w", n.Name, err)
	}
	return answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), nil
}

// RegisterAttributes adds the search attributes that the namespace lacks. The error has
// class CONFIG_INVALID if an administrator has to add them, as on Temporal Cloud.
func (n Namespace) RegisterAttributes(ctx context.Context, keys ...temporal.SearchAttributeKey) error {
	missing, err := n.MissingAttributes(ctx, keys...)
	if err != nil || len(missing) == 0 {
		return err
	}
	_, err = n.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: n.Name, SearchAttributes: missing,
	})
	if IsDenied(err) {
		return failure.Errorf(failure.ConfigInvalid, "namespace %s lacks the search attributes %s, and this account may not add them: %v",
			n.Name, strings.Join(slices.Sorted(maps.Keys(missing)), ", "), err)
	}
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %s: %w", n.Name, err)
	}
	return nil
}

// IsDenied reports whether the server does not offer a call, or not to this account.
func IsDenied(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	_, unknown := errors.AsType[*serviceerror.Unimplemented](err)
	return denied || unknown
}

// MissingAttributes returns those of the search attributes that the namespace lacks.
func (n Namespace) MissingAttributes(ctx context.Context, keys ...temporal.SearchAttributeKey) (map[string]enumspb.IndexedValueType, error) {
	known, err := n.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.Name})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of namespace %s: %w", n.Name, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, key := range keys {
		if _, ok := known.GetCustomAttributes()[key.GetName()]; !ok {
			missing[key.GetName()] = key.GetValueType()
		}
	}
	return missing, nil
}

// Served reports whether a worker has polled a task queue recently.
func (n Namespace) Served(ctx context.Context, queue string) (bool, error) {
	answer, err := n.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return false, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	return len(answer.GetPollers()) > 0, nil
}

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
		Namespace: n.Name, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
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
		Namespace: n.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
}
