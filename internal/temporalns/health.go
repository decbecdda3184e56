package temporalns

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/workflows"
)

// Retention is how long the namespace keeps the history of a run that has ended.
func (n Namespace) Retention(ctx context.Context) (time.Duration, error) {
	answer, err := n.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: n.name})
	if err != nil {
		return 0, fmt.Errorf("describe namespace %s: %w", n.name, err)
	}
	return answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), nil
}

// RegisterAttributes adds the search attributes that the namespace lacks.
func (n Namespace) RegisterAttributes(ctx context.Context) error {
	missing, err := n.MissingAttributes(ctx)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = n.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: n.name, SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %s: %w", n.name, err)
	}
	return nil
}

// MissingAttributes returns the search attributes that the namespace lacks.
func (n Namespace) MissingAttributes(ctx context.Context) (map[string]enumspb.IndexedValueType, error) {
	known, err := n.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.name})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of namespace %s: %w", n.name, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, key := range workflows.Attributes() {
		if _, ok := known.GetCustomAttributes()[key.GetName()]; !ok {
			missing[key.GetName()] = key.GetValueType()
		}
	}
	return missing, nil
}

// Served reports whether a worker has asked a task queue for work lately.
func (n Namespace) Served(ctx context.Context, queue string) (bool, error) {
	answer, err := n.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return false, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	return len(answer.GetPollers()) > 0, nil
}

// skewPatience bounds the questions that tell the server's time.
const skewPatience = 5 * time.Second

// Skew is how far the server's clock is ahead of ours, give or take slack. The
// server has no call that tells its time, but it notes when it was last asked
// for work; so it is asked, on a queue that nobody else knows.
func (n Namespace) Skew(ctx context.Context) (skew, slack time.Duration, err error) {
	queue := "clock-" + rand.Text()
	ctx, stop := context.WithTimeout(ctx, skewPatience)
	defer stop()
	begun := time.Now()
	asked := make(chan error, 1)
	go func() {
		_, err := n.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
			Namespace: n.name, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, Identity: queue,
		})
		asked <- err
	}()
	for {
		answer, err := n.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return 0, 0, fmt.Errorf("describe task queue %s: %w", queue, err)
		}
		if pollers := answer.GetPollers(); len(pollers) > 0 {
			slack = time.Since(begun)
			return pollers[0].GetLastAccessTime().AsTime().Sub(begun), slack, nil
		}
		select {
		case err := <-asked:
			return 0, 0, fmt.Errorf("ask for work on task queue %s, to learn the time: %w", queue, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
