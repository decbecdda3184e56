package workflows

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// The search attributes by which operators find reviews. They are wire format.
var (
	AttributeChangelist    = temporal.NewSearchAttributeKeyInt64("CriticizerChangelist")
	AttributeReviewVersion = temporal.NewSearchAttributeKeyInt64("CriticizerReviewVersion")
	AttributeStage         = temporal.NewSearchAttributeKeyKeyword("CriticizerStage")
	AttributeErrorClass    = temporal.NewSearchAttributeKeyKeyword("CriticizerErrorClass")
	AttributeOutcome       = temporal.NewSearchAttributeKeyKeyword("CriticizerOutcome")
	AttributeEscalated     = temporal.NewSearchAttributeKeyBool("CriticizerEscalated")
)

// StartAttributes are set by whoever starts a review.
func StartAttributes(req review.Request) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		AttributeChangelist.ValueSet(int64(req.Changelist)),
		AttributeReviewVersion.ValueSet(int64(req.Version)),
	)
}

func showStage(ctx workflow.Context, stage review.Stage) error {
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeStage.ValueSet(string(stage)), AttributeErrorClass.ValueUnset())
}

func showDeath(ctx workflow.Context, class failure.Class) error {
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeErrorClass.ValueSet(string(class)))
}

func showOutcome(ctx workflow.Context, outcome review.Outcome) error {
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeOutcome.ValueSet(string(outcome)))
}

// RegisterAttributes adds the search attributes that the namespace lacks.
func RegisterAttributes(ctx context.Context, c client.Client, namespace string) error {
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes of namespace %s: %w", namespace, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{
		AttributeChangelist, AttributeReviewVersion, AttributeStage,
		AttributeErrorClass, AttributeOutcome, AttributeEscalated,
	} {
		if _, ok := known.GetCustomAttributes()[key.GetName()]; !ok {
			missing[key.GetName()] = key.GetValueType()
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %s: %w", namespace, err)
	}
	return nil
}
