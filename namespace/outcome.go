package namespace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
)

// EndOf says how the newest run of a workflow has ended, such as "run 1234 is
// terminated"; it is empty while the run goes on. A workflow that Temporal does
// not know, or no longer, has ended too.
func (n Namespace) EndOf(ctx context.Context, workflowID string) (how string, err error) {
	described, err := n.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return "its run is no longer known to Temporal", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at workflow %s: %w", workflowID, err)
	}
	if described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return "", nil
	}
	return fmt.Sprintf("run %s is %s", described.WorkflowExecution.RunID, strings.ToLower(described.Status.String())), nil
}
