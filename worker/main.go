// Command worker runs reviews. It serves the task queues of the stages that its
// --roles flag names; each stage has its own credentials and database role.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.Execute(ctx, newCommand(os.Getenv), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(cli.Report(os.Stderr, "worker", err))
}

func newCommand(getenv func(string) string) *cobra.Command {
	var configPath string
	var names []string
	var healthy bool
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run reviews: serve the task queues of the named stages",
		Long: `Worker serves the task queues of the named stages until it receives SIGTERM or
Ctrl-C. It then takes no new work and finishes the work in flight.

Stages:
  workflows  the workflow of each review and its job row
  fetch      reads changelists with p4
  redact     masks secrets
  llm        calls the model
  notify     sends mail
  retention  deletes expired data

Give each worker only the secrets of its stages. A worker reads the files of its
secrets every 10 seconds, and on SIGHUP. It logs to standard error, in color on a terminal
unless NO_COLOR is set.

Exit status: 0 stopped, 1 failed, 2 wrong usage.`,
		Example: `  worker
  worker --config /etc/criticizer/criticizer.yaml --roles fetch,redact
  worker --healthy`,
		Version: strings.TrimPrefix(cli.Version("worker"), "worker "),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := parseStages(names)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			cfg, err := settings.Load(configPath, getenv)
			if err != nil {
				return err
			}
			if healthy {
				return telemetry.CheckReady(cmd.Context(), "worker.listen", cfg.Worker.Listen)
			}
			return run(cmd.Context(), cfg, chosen, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else "+settings.Program.DefaultPath+" if it exists)")
	flags.StringSliceVar(&names, "roles", []string{"all"}, "roles to serve, separated by commas")
	flags.BoolVar(&healthy, "healthy", false, "ask the worker at worker.listen whether it is ready: exit status 0 if it reaches Temporal and the database")
	return cmd
}

// run serves the stages until ctx ends.
func run(ctx context.Context, cfg *settings.Config, chosen []stage, stderr io.Writer) error {
	if err := cfg.Check(rolesOf(chosen)...); err != nil {
		return err
	}
	r, err := newRuntime(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	defer r.close()
	return r.serve(ctx, chosen)
}

// rolesOf returns the configuration roles of the stages.
func rolesOf(chosen []stage) []settings.Role {
	var roles []settings.Role
	for _, s := range chosen {
		roles = append(roles, s.name)
	}
	return roles
}

// parseStages returns the stages with the names. No name, or "all", is every
// stage of a review.
func parseStages(names []string) ([]stage, error) {
	if len(names) == 0 || slices.Equal(names, []string{"all"}) {
		return reviewStages(), nil
	}
	var chosen []stage
	for _, name := range names {
		s, ok := stageNamed(strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("unknown role %q in --roles", name)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}
