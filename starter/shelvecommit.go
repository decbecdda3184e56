package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

func (a *app) shelveCommit() *cobra.Command {
	var submit submitFlags
	cmd := &cobra.Command{
		Use:   "shelve-commit CHANGELIST",
		Short: "Start the review of a shelved changelist once its shelf is quiet",
		Long: `Announce that a pending changelist was shelved. The review of its shelf starts
when the shelf has not changed for a while (shelf.quiet), so that only the last
of several shelves in a row is reviewed. If Temporal does not answer in time,
the request is spooled as by change-commit.`,
		Example: `  criticizer-starter shelve-commit 4712`,
		Args:    a.changelistArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := trigger.Load(a.configPath, a.getenv)
			if err != nil {
				return err
			}
			req, err := a.request(cmd, args, review.Request{Version: 1, ServerID: cmp.Or(submit.serverID, cfg.ServerID), Shelved: true, ShelvedAt: time.Now().UTC()})
			if err != nil {
				return err
			}
			return a.submit(cmd, cfg, req, submit)
		},
	}
	submit.register(cmd)
	return cmd
}

// signalShelf signals the workflow that waits for the shelf to be quiet, or
// starts it.
func signalShelf(ctx context.Context, c client.Client, req review.Request, quiet time.Duration) (client.WorkflowRun, error) {
	return c.SignalWithStartWorkflow(ctx, req.Key, contract.ShelfSignal, req.ShelvedAt, client.StartWorkflowOptions{
		TaskQueue:             contract.QueueBookkeeping,
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(contract.AttributeChangelist.ValueSet(int64(req.Changelist))),
		StaticSummary:         fmt.Sprintf("Shelf of changelist %d", req.Changelist),
	}, contract.SettleShelf, contract.Shelf{ServerID: req.ServerID, Changelist: req.Changelist, Quiet: quiet})
}
