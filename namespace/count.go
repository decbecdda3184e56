package namespace

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/workflows"
)

// InStage counts the reviews that are in a stage, as far as the server's index,
// which is a moment behind, knows.
func (n Namespace) InStage(ctx context.Context, stage string) (int64, error) {
	counted, err := n.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: n.name,
		Query:     fmt.Sprintf(`WorkflowType = "ReviewChangelist" AND ExecutionStatus = "Running" AND %s = %q`, workflows.AttributeStage.GetName(), stage),
	})
	if err != nil {
		return 0, fmt.Errorf("count the reviews in stage %s: %w", stage, err)
	}
	return counted.GetCount(), nil
}
