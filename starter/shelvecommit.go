package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// shelveCommit tells that a changelist was shelved. Its shelf is reviewed when it
// has settled: the last of several in a row, once.
func shelveCommit(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("shelve-commit", env.stdout)
	serverID := flags.String("server-id", "", "")
	patience := flags.Duration("patience", defaultPatience, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%w: shelve-commit wants one changelist, got %d arguments", errUsage, flags.NArg())
	}
	cfg, err := loadConfig(env)
	if err != nil {
		return err
	}
	cl, err := review.ParseChangelist(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	server := cmp.Or(*serverID, cfg.ServerID)
	req := review.Request{Changelist: cl, Version: 1, ServerID: server, Key: review.ShelfKey(server, cl), Shelved: true}
	if err := req.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	a, err := submit(ctx, cfg, req, false, *patience)
	if err != nil {
		return err
	}
	return a.print(env, *asJSON)
}

// announce tells the workflow that waits for the shelf to settle, or starts it.
func announce(ctx context.Context, c client.Client, req review.Request, quiet time.Duration) (answer, error) {
	a := answer{Changelist: req.Changelist, Version: req.Version, Shelved: true, WorkflowID: req.Key, State: review.JobInProgress}
	run, err := c.SignalWithStartWorkflow(ctx, req.Key, workflows.ShelfSignal, nil, client.StartWorkflowOptions{
		TaskQueue:             activities.QueueBookkeeping,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttributeChangelist.ValueSet(int64(req.Changelist))),
	}, workflows.SettleShelf, workflows.Shelf{ServerID: req.ServerID, Changelist: req.Changelist, Quiet: quiet})
	if err != nil {
		return a, fmt.Errorf("announce shelf of changelist %d: %w", req.Changelist, err)
	}
	a.RunID = run.GetRunID()
	return a, nil
}
