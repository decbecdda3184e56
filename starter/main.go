// Command starter starts the review of a submitted or shelved changelist. It is
// made for Perforce triggers and can be run by hand.
//
// changecommit.go and shelvecommit.go are the commands of triggers, which trigger.go keeps from
// failing or delaying a submit. submit.go starts the review or, if Temporal does not answer,
// spools the request (spool.go); wait.go waits for its end, and answer.go has what is printed.
// install.go checks the host of the trigger.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings/trigger"
)

// programName is the name of the installed program.
const programName = "criticizer-starter"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	status := cli.Report(os.Stderr, programName, err)
	if isTaken(err) {
		status = 3
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	execute := func() error {
		cmd := newCommand(getenv) //nolint:contextcheck // cobra passes ctx to the commands
		cmd.SetIn(stdin)
		return cli.Execute(ctx, cmd, args, stdout, stderr)
	}
	// Before the arguments are parsed: a trigger must not fail on any of them.
	if slices.Contains(args, "--"+triggerFlag) || slices.Contains(args, "--"+triggerFlag+"=true") {
		runAsTrigger(stdout, execute)
		return nil
	}
	return execute()
}

// An app holds what all commands share.
type app struct {
	getenv     func(string) string
	configPath string
	trigger    bool
}

func newCommand(getenv func(string) string) *cobra.Command {
	a := &app{getenv: getenv}
	root := &cobra.Command{
		Use:   programName,
		Short: "Start reviews of Perforce changelists",
		Long: `Starts the review of a submitted or shelved changelist. It is made for
Perforce triggers and can be run by hand.

Lines of the trigger table, as install --print writes them:
  criticizer change-commit //depot/... "/opt/criticizer/criticizer-starter --trigger change-commit %changelist%"
  criticizer-shelf shelve-commit //depot/... "/opt/criticizer/criticizer-starter --trigger shelve-commit %changelist%"

Exit status: 0 the review was started, exists already or was spooled; 1 failed;
2 wrong usage; 3 the key belongs to the review of another changelist, which is
printed. With --trigger it is always 0.`,
		Example: `  criticizer-starter change-commit 4711
  criticizer-starter change-commit --wait --review-version 2 4711
  criticizer-starter shelve-commit 4712
  criticizer-starter drain`,
		Version: strings.TrimPrefix(cli.Version(programName), programName+" "),
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else "+trigger.Program.DefaultPath+" if it exists)")
	flags.BoolVar(&a.trigger, triggerFlag, false, "run as a Perforce trigger: never fail, print at most one line, end within "+defaultTimeout.String())
	root.AddCommand(a.changeCommit(), a.shelveCommit(), a.drain(), a.install())
	return root
}
