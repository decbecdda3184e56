package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
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
