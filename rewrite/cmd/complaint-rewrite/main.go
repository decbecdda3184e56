// Command complaint-rewrite is the complaint rewrite queue: the worker that executes jobs, the
// commands of a backend, which enqueues jobs and fetches results, and those of an operator.
//
// Read worker.go first, then enqueue.go and queue.go. config.go describes the settings.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/operator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(operator.Report(os.Stderr, "complaint-rewrite", err))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	return cli.Execute(ctx, newCommand(getenv), args, stdout, stderr) //nolint:contextcheck // cobra passes ctx to the commands
}

// An app holds what all commands share.
type app struct {
	getenv     func(string) string
	configPath string
	json       bool
}

func newCommand(getenv func(string) string) *cobra.Command {
	a := &app{getenv: getenv}
	root := &cobra.Command{
		Use:   "complaint-rewrite",
		Short: "Run, fill and repair the queue of complaint rewrites",
		Long: `Runs the worker of the complaint rewrite queue, enqueues jobs, and shows and repairs
them. No command but result prints a message or a rewrite: jobs are known by their IDs.

Exit status: 0 done, 1 failed, 2 wrong usage.`,
		Example: `  complaint-rewrite migrate
  complaint-rewrite worker
  complaint-rewrite enqueue --file jobs.jsonl
  complaint-rewrite jobs --status failed`,
		Version: strings.TrimPrefix(cli.Version("complaint-rewrite"), "complaint-rewrite "),
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "configuration `FILE` (default $COMPLAINT_REWRITE_CONFIG, else "+program.DefaultPath+" if it exists)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.worker(), a.doctor(), a.migrate(), a.keyset(),
		a.enqueue(), a.seal(), a.result(),
		a.run(), a.runs(), a.jobs(), a.show(), a.cancel(), a.requeue(), a.stats(), a.batch())
	return root
}

// settings reads the configuration and checks what a command needs of it.
func (a *app) settings(needs ...string) (*settings, error) {
	c, err := readSettings(a.configPath, a.getenv, needs...)
	if err != nil {
		return nil, cli.Advise(err, program.Page+" describes every field")
	}
	return c, nil
}

// quiet discards what libraries log: a command reports errors itself.
var quiet = slog.New(slog.DiscardHandler)

// print writes v as JSON, or else what text writes.
func (a *app) print(cmd *cobra.Command, v any, text func(io.Writer)) error {
	if !a.json {
		text(cmd.OutOrStdout())
		return nil
	}
	return operator.WriteJSON(cmd.OutOrStdout(), v)
}

// writeTable prints the rows below a header, or that there are none.
func writeTable(w io.Writer, empty string, rows [][]string) {
	if len(rows) == 1 {
		fmt.Fprintln(w, empty)
		return
	}
	operator.WriteTable(w, "", rows)
}

func badUsage(format string, args ...any) error {
	return cli.UsageError{Err: fmt.Errorf(format, args...)}
}

// oneID checks that the operand is the ID of a job or a batch.
func oneID(cmd *cobra.Command, args []string) error {
	if err := cli.Operands(cmd, args); err != nil {
		return err
	}
	if uuid.Validate(args[0]) != nil {
		return badUsage("ID %q: want a UUID", args[0])
	}
	return nil
}
