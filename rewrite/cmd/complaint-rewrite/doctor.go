package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (a *app) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that a worker needs, and print how to fix it",
		Long: `Checks what a worker needs: its settings, the role of its database login, the schema,
whether the keyset opens the newest message, Temporal and the schedules, and that each provider accepts its key, by asking for its models,
which is free of charge. All checks run. Nothing is changed but the audit log, which records
the message that was read.

Exit status: 0 no check failed; 1 a check failed; 2 wrong usage.`,
		Example: "  complaint-rewrite doctor",
	}
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "limit each check to this `DURATION`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.settings()
		if err != nil {
			return err
		}
		found := operator.RunChecks(cmd.Context(), *timeout, c.checks())
		if err := a.print(cmd, found, func(w io.Writer) { operator.PrintResults(w, found) }); err != nil {
			return err
		}
		return operator.Failure(found)
	}
	return cmd
}

func (c *settings) checks() []operator.Check {
	checks := []operator.Check{{Name: "settings", Run: c.checkLimits}, {Name: "database", Run: c.checkDatabase}, {Name: "temporal", Run: c.checkTemporal}}
	configured := c.providers()
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		// The URLs have defaults: a provider without a key may be one that no job names.
		if configured[name].APIKey.IsSet() || name == c.Route.Provider || name == "other" {
			checks = append(checks, operator.Check{Name: name, Run: func(ctx context.Context, found *operator.Findings) error { return c.checkProvider(ctx, name, found) }})
		}
	}
	return checks
}

func (c *settings) checkLimits(_ context.Context, found *operator.Findings) error {
	_, err := c.runs()
	_, badRoute := c.route()
	if err := errors.Join(err, badRoute); err != nil {
		return err
	}
	found.OK("limits and route are valid")
	return nil
}

// checkDatabase checks the schema and that the keyset opens the newest message.
func (c *settings) checkDatabase(ctx context.Context, found *operator.Findings) error {
	queue, err := c.open(ctx, store.RoleWorker)
	if err != nil {
		return err
	}
	defer queue.Close()
	found.OK("the schema has this build's version, and the session acts as %s", store.RoleWorker)
	messages, err := c.texts("message", queue)
	if err != nil {
		return err
	}
	newest, err := queue.NewestMessages(ctx, 1)
	for _, ref := range newest {
		if _, err := messages.Get(ctx, artifact.Owner{}, artifact.Ref(ref)); err != nil {
			return cli.Advise(err, "give the worker the keyset with which backends seal")
		}
		found.OK("the keyset opens the newest message")
	}
	return err
}

func (c *settings) checkTemporal(ctx context.Context, found *operator.Findings) error {
	namespace, err := temporal.Dial(ctx, log.NewStructuredLogger(quiet), c.Temporal)
	if err != nil {
		return err
	}
	defer namespace.Close()
	found.OK("namespace %s at %s answers; the queue needs no search attributes", c.Temporal.Name, c.Temporal.Address)
	for _, w := range rewrite.Workers() {
		schedule, err := namespace.ScheduleClient().GetHandle(ctx, string(w)).Describe(ctx)
		switch {
		case err != nil:
			found.Warn("start complaint-rewrite worker: it creates the schedules", "%v", temporal.ScheduleError("describe", string(w), err))
		case schedule.Schedule.State.Paused:
			found.Warn(fmt.Sprintf("temporal schedule toggle -n %s -s %s --unpause", c.Temporal.Name, w), "schedule %s is paused", w)
		default:
			found.OK("schedule %s runs", w)
		}
	}
	return nil
}

func (c *settings) checkProvider(ctx context.Context, name string, found *operator.Findings) error {
	rewriter, err := c.rewriter(quiet, "")
	if err != nil {
		return err
	}
	models, err := rewriter.Models(ctx, name)
	if err != nil {
		return err
	}
	found.OK("it accepts the key")
	if len(models) > 0 && name == c.Route.Provider && !slices.Contains(models, c.Route.Model) { // not every provider lists all
		found.Warn("correct route.model if jobs wait with NOT_FOUND", "it does not list %s among its %d models", c.Route.Model, len(models))
	}
	return nil
}
