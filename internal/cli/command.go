package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// A UsageError is an error in the command line. The exit status is 2 and the
// user is referred to the help.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e UsageError) Unwrap() error { return e.Err }

// Execute runs the command that args name. Every error that cobra returns before
// it calls the command, such as an unknown flag, becomes a [UsageError].
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	called := false
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) { called = true }
	requireSubcommand(root)
	root.SetArgs(append([]string{}, args...)) // not nil: cobra replaces nil by os.Args
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !called {
		return UsageError{err}
	}
	return err
}

// requireSubcommand makes a command group without a subcommand an error. Cobra
// prints the help instead, with exit status 0, even for an unknown subcommand.
func requireSubcommand(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		requireSubcommand(sub)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return UsageError{fmt.Errorf("%s needs a command", cmd.CommandPath())}
		}
		return UsageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())}
	}
}

// Report writes err to stderr as program reports errors, and returns the exit
// status: 0 without an error, 2 for a [UsageError], 1 for any other.
func Report(stderr io.Writer, program string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: error: %v\n", program, err)
	if _, ok := errors.AsType[UsageError](err); ok {
		fmt.Fprintf(stderr, "hint: run %s --help\n", program)
		return 2
	}
	return 1
}
