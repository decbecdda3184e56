package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

func (c *app) forgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "forget CHANGELIST", Short: "Delete what is stored about a changelist",
		Long: `Deletes the artifacts, findings, feedback and dead letters of all reviews of a
changelist, replaces the addresses of its deliveries by keyed digests, and
lets Temporal delete its closed runs. Unsent mails are not sent.

It is refused while a review is in progress or a mail is in doubt. Job, outcome
and cost stay, so that a later trigger of the same version is answered, and the
audit log. Copies outside of Criticizer stay: mails, posts, the model's provider,
backups.`,
		Example: `  criticizer forget 4711 --reason "PRIV-3: customer data in a test file"`,
	}
	reason := statementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cl, err := parseChangelist(args[0])
		if err != nil {
			return err
		}
		db, cfg, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		gone, err := db.ForgetChangelist(cmd.Context(), cl, c.operator(), *reason)
		if failure.ClassOf(err) == failure.WriteConflict {
			return advise(err, "criticizer why %d; end the review that it shows, or settle the delivery", cl)
		}
		if err != nil {
			return err
		}
		temporal, err := dialTemporal(cmd.Context(), cfg)
		runs := 0
		if err == nil {
			defer temporal.Close()
			runs, err = temporal.forget(cmd.Context(), cl)
		}
		if err != nil {
			return advise(fmt.Errorf("changelist %d is forgotten, but Temporal's history of it is not deleted: %w", cl, err),
				"run the same command again when Temporal responds, or wait for the end of its retention")
		}
		return c.done("changelist %d is forgotten: %s, %s, %s, %s in Temporal", cl,
			plural(gone.Artifacts, "artifact"), plural(gone.Findings, "finding"), fmt.Sprintf("%d addresses", gone.Deliveries), plural(runs, "run"))
	}
	return cmd
}

// forget deletes the closed runs of a changelist, and returns their number.
func (r runs) forget(ctx context.Context, cl review.Changelist) (deleted int, err error) {
	var page []byte
	for first := true; first || len(page) > 0; first = false {
		found, err := r.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: r.name, NextPageToken: page,
			Query: fmt.Sprintf("%s = %d", contract.AttributeChangelist.GetName(), cl),
		})
		if err != nil {
			return deleted, fmt.Errorf("list runs of changelist %d: %w", cl, err)
		}
		for _, run := range found.GetExecutions() {
			if run.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				continue
			}
			_, err := r.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: r.name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetExecution().GetWorkflowId(), RunId: run.GetExecution().GetRunId()},
			})
			if err != nil {
				return deleted, fmt.Errorf("delete run %s: %w", run.GetExecution().GetRunId(), err)
			}
			deleted++
		}
		page = found.GetNextPageToken()
	}
	return deleted, nil
}
