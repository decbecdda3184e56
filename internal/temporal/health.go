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
		return failure.Errorf(failure.ConfigInvalid, "namespace %s lacks search attributes, and this account may not add them (%v): %s", n.Name, err, n.CreateAttributes(missing))
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

// CreateAttributes returns the commands that create search attributes.
func (n Namespace) CreateAttributes(missing map[string]enumspb.IndexedValueType) string {
	var commands []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		commands = append(commands, fmt.Sprintf("temporal operator search-attribute create --address %s --namespace %s --name %s --type %s", n.address, n.Name, name, missing[name]))
	}
	return strings.Join(commands, "; ")
}

// MissingAttributes returns those of the search attributes that the namespace lacks. The error has
// class CONFIG_INVALID if one has another type: each workflow that sets it would hang.
func (n Namespace) MissingAttributes(ctx context.Context, keys ...temporal.SearchAttributeKey) (map[string]enumspb.IndexedValueType, error) {
	known, err := n.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.Name})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of namespace %s: %w", n.Name, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, key := range keys {
		switch has, ok := known.GetCustomAttributes()[key.GetName()]; {
		case !ok:
			missing[key.GetName()] = key.GetValueType()
		case has != key.GetValueType():
			return nil, failure.Errorf(failure.ConfigInvalid, "search attribute %s of namespace %s has type %s, want %s: temporal operator search-attribute remove --address %s --namespace %[2]s --name %[1]s; %[6]s",
				key.GetName(), n.Name, has, key.GetValueType(), n.address, n.CreateAttributes(map[string]enumspb.IndexedValueType{key.GetName(): key.GetValueType()}))
		}
	}
	return missing, nil
}
