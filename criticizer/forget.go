package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
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
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
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
		gone, err := db.ForgetChangelist(cmd.Context(), cl, operator.Name(c.getenv), *reason)
		if err != nil {
			return adviseForget(err, cl, cfg.Temporal)
		}
		var related strings.Builder
		for _, other := range gone.Related {
			fmt.Fprintf(&related, "; the same change has reviews as changelist %d: criticizer forget %[1]d --reason \"WHY\"", other)
		}
		server, err := dialTemporal(cmd.Context(), cfg)
		runs := 0
		if err == nil {
			defer server.Close()
			runs, err = server.forget(cmd.Context(), cl)
		}
		if err != nil {
			return advise(fmt.Errorf("changelist %d is forgotten, but Temporal's history of it is not deleted: %w", cl, err),
				"run the same command again when Temporal responds, or wait for the end of its retention%s", related.String())
		}
		return c.done("changelist %d is forgotten: %s, %s, %s, %s in Temporal%s", cl,
			plural(gone.Artifacts, "artifact"), plural(gone.Findings, "finding"), plural(gone.Deliveries, "recipient"), plural(runs, "run"), related.String())
	}
	return cmd
}

// adviseForget adds to a refusal what ends its cause.
func adviseForget(err error, cl review.Changelist, at temporal.Config) error {
	refusal, _ := errors.AsType[store.ForgetRefusal](err)
	switch refusal {
	case store.ForgetNoReview:
		return advise(err, "correct the number; to see the reviews that are stored: criticizer review list")
	case store.ForgetInProgress:
		return advise(err, "wait until it has ended, or cancel it: "+
			"temporal workflow cancel --address %s --namespace %s --query \"CriticizerChangelist = %d\" --reason WHY --yes; "+
			"a replay that was interrupted ends when it is repeated or its dead letter is resolved; to see which: criticizer why %[3]d",
			at.Address, at.Name, cl)
	case store.ForgetDeliveryInDoubt:
		return advise(err, "it may have been sent, and a search for it needs the address; to see which, then resend or waive it: criticizer delivery list --changelist %d", cl)
	case store.ForgetNoticeInDoubt:
		return advise(err, "it may have been sent, and a search for it needs the address; run the same command again 7 days after the attempt")
	}
	return err
}

// forget deletes the closed runs of a changelist, and returns their number. A paused run is open.
// Temporal lists a run for a moment after it is deleted.
func (r runs) forget(ctx context.Context, cl review.Changelist) (deleted int, err error) {
	var page []byte
	for first := true; first || len(page) > 0; first = false {
		found, err := r.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: r.Name, NextPageToken: page,
			Query: fmt.Sprintf("%s = %d", contract.AttributeChangelist.GetName(), cl),
		})
		if err != nil {
			return deleted, fmt.Errorf("list runs of changelist %d: %w", cl, err)
		}
		for _, run := range found.GetExecutions() {
			if temporal.IsOpen(run.GetStatus()) {
				continue
			}
			_, err := r.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: r.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetExecution().GetWorkflowId(), RunId: run.GetExecution().GetRunId()},
			})
			if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
				continue
			}
			if err != nil {
				return deleted, fmt.Errorf("delete run %s: %w", run.GetExecution().GetRunId(), err)
			}
			deleted++
		}
		page = found.GetNextPageToken()
	}
	return deleted, nil
}
