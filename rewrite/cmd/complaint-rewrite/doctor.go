package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// A checkResult is the result of one check: ok, warn or fail.
type checkResult struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check everything that a worker needs, and print how to fix it",
		Long: `Checks what a worker needs: its settings, the role of its database login, the schema,
whether the keyset opens the newest message, Temporal and the schedules, and that each provider accepts its key, by asking for its models,
which is free of charge. All checks run. Nothing is changed but the audit log, which records
the message that was read.

Exit status: 0 no check failed; 1 a check failed; 2 wrong usage.`,
		Example: "  complaint-rewrite doctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings()
			if err != nil {
				return err
			}
			results := c.examine(cmd.Context())
			err = a.print(cmd, results, func(w io.Writer) {
				for _, r := range results {
					fmt.Fprintf(w, "%-5s %-9s %s\n", r.Status, r.Check, r.Detail)
					if r.Fix != "" {
						fmt.Fprintf(w, "      %-9s fix: %s\n", "", r.Fix)
					}
				}
			})
			if failed := slices.IndexFunc(results, func(r checkResult) bool { return r.Status == "fail" }); err == nil && failed >= 0 {
				err = cli.Advise(fmt.Errorf("check %s failed", results[failed].Check), "the checks above have the fixes")
			}
			return err
		},
	}
}

// examine runs all checks.
func (c *settings) examine(ctx context.Context) (results []checkResult) {
	report := func(check, ok string, err error) {
		r := checkResult{check, "ok", ok, ""}
		if err != nil {
			r.Status, r.Detail, r.Fix = "fail", err.Error(), cmp.Or(cli.HintOf(err), failure.ClassOf(err).Describe().Hint)
		}
		results = append(results, r)
	}
	warn := func(check, detail, fix string) { results = append(results, checkResult{check, "warn", detail, fix}) }

	_, err := c.runs()
	_, badRoute := c.route()
	report("settings", "limits and route are valid", cmp.Or(err, badRoute))

	queue, err := c.open(ctx, store.RoleWorker)
	report("database", fmt.Sprintf("the schema has this build's version, and the session acts as %s", store.RoleWorker), err)
	if err == nil {
		defer queue.Close()
		report("keyset", "it opens the newest message", c.openNewest(ctx, queue))
	}

	namespace, err := temporal.Dial(ctx, log.NewStructuredLogger(quiet), c.Temporal)
	report("temporal", fmt.Sprintf("namespace %s at %s answers; the queue needs no search attributes", c.Temporal.Name, c.Temporal.Address), err)
	if err == nil {
		defer namespace.Close()
		for _, w := range rewrite.Workers() {
			schedule, err := namespace.ScheduleClient().GetHandle(ctx, string(w)).Describe(ctx)
			switch {
			case err != nil:
				warn("schedule", fmt.Sprintf("%v", temporal.ScheduleError("describe", string(w), err)), "start complaint-rewrite worker: it creates the schedules")
			case schedule.Schedule.State.Paused:
				warn("schedule", string(w)+" is paused", fmt.Sprintf("temporal schedule toggle -n %s -s %s --unpause", c.Temporal.Name, w))
			default:
				report("schedule", string(w)+" runs", nil)
			}
		}
	}

	rewriter, err := c.rewriter(quiet, "")
	if err != nil {
		report("provider", "", err)
		return results
	}
	configured := c.providers()
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		// The URLs have defaults: a provider without a key may be one that no job names.
		if !configured[name].APIKey.IsSet() && name != c.Route.Provider && name != "other" {
			continue
		}
		models, err := rewriter.Models(ctx, name)
		report("provider", name+" accepts the key", err)
		if err == nil && len(models) > 0 && name == c.Route.Provider && !slices.Contains(models, c.Route.Model) { // not every provider lists all
			warn("provider", fmt.Sprintf("%s does not list %s among its %d models", name, c.Route.Model, len(models)), "correct route.model if jobs wait with NOT_FOUND")
		}
	}
	return results
}

// openNewest returns an error if the keyset does not open the newest message.
func (c *settings) openNewest(ctx context.Context, queue *store.Queue) error {
	messages, err := c.texts("message", queue)
	if err != nil {
		return err
	}
	newest, err := queue.NewestMessages(ctx, 1)
	for _, ref := range newest {
		if _, err := messages.Get(ctx, artifact.Owner{}, artifact.Ref(ref)); err != nil {
			return cli.Advise(err, "give the worker the keyset with which backends seal")
		}
	}
	return err
}
