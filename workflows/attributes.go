package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/review"
)

// The search attributes of reviews. They are wire format.
var (
	AttributeChangelist    = temporal.NewSearchAttributeKeyInt64("CriticizerChangelist")
	AttributeReviewVersion = temporal.NewSearchAttributeKeyInt64("CriticizerReviewVersion")
	AttributeStage         = temporal.NewSearchAttributeKeyKeyword("CriticizerStage")
	AttributeErrorClass    = temporal.NewSearchAttributeKeyKeyword("CriticizerErrorClass")
	AttributeOutcome       = temporal.NewSearchAttributeKeyKeyword("CriticizerOutcome")
	AttributeEscalated     = temporal.NewSearchAttributeKeyBool("CriticizerEscalated")
)

// Attributes lists the search attributes that a namespace must have.
func Attributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{
		AttributeChangelist, AttributeReviewVersion, AttributeStage,
		AttributeErrorClass, AttributeOutcome, AttributeEscalated,
	}
}

// StartAttributes are the search attributes that a new review starts with.
func StartAttributes(req review.Request) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		AttributeChangelist.ValueSet(int64(req.Changelist)),
		AttributeReviewVersion.ValueSet(int64(req.Version)),
	)
}

func showVersion(ctx workflow.Context, version review.Version) error {
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeReviewVersion.ValueSet(int64(version)))
}
