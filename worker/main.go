// Command worker runs reviews. It serves the task queues of the roles that its --roles flag
// names; each role has its own credentials and database role.
//
// Read roles.go first: what each role needs. runtime.go connects, starts and stops the workers and
// says whether they are ready, breaker.go stops them during an outage, and secrets.go renews their
// secrets. watch.go closes the jobs of reviews that were terminated, and oncall.go pages the
// person on call.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/telemetry"
)

// programName is the name of the installed program.
const programName = "criticizer-worker"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.Execute(ctx, newCommand(os.Getenv), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(cli.Report(os.Stderr, programName, err))
}

func newCommand(getenv func(string) string) *cobra.Command {
	var configPath string
	var names []string
	var healthy bool
	cmd := &cobra.Command{
		Use:   programName,
		Short: "Run reviews: serve the task queues of the named roles",
		Long: `Serves the task queues of the named roles until it receives SIGTERM or
Ctrl-C. It then takes no new work and finishes the work in flight.

Roles:
` + aboutRoles() + `
Give each worker only the secrets of its roles. A worker reads the files of its
secrets every 10 seconds, and on SIGHUP. It logs to standard error: JSON, or text on
a terminal, in color unless NO_COLOR is set.

Exit status: 0 stopped, 1 failed, 2 wrong usage.`,
		Example: `  criticizer-worker
  criticizer-worker --config /etc/criticizer/criticizer.yaml --roles fetch,redact
  criticizer-worker --healthy`,
		Version: strings.TrimPrefix(cli.Version(programName), programName+" "),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings.Load(configPath, getenv)
			if err != nil {
				return err
			}
			chosen, err := parseRoles(names, cfg.Worker)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			if healthy {
				return telemetry.CheckReady(cmd.Context(), "worker.listen", cfg.Worker.Listen)
			}
			if err := cfg.Check(rolesOf(chosen)...); err != nil {
				return err
			}
			r, err := newRuntime(cmd.Context(), cfg, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer r.close()
			return r.serve(cmd.Context(), chosen)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else "+settings.Program.DefaultPath+" if it exists)")
	flags.StringSliceVar(&names, "roles", []string{"all"}, "roles to serve, separated by commas")
	flags.BoolVar(&healthy, "healthy", false, "ask the worker at worker.listen whether it is ready: exit status 0 if it reaches Temporal and the database")
	return cmd
}
