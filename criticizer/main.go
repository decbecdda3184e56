// Command criticizer is the operator's tool: it shows reviews, repairs what
// failed, and checks an installation.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &app{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, progress: cli.Progress}
	status := c.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// run executes one command line and returns the exit status.
func (c *app) run(ctx context.Context, args []string) int {
	err := cli.Execute(ctx, c.rootCommand(), args, c.stdout, c.stderr) //nolint:contextcheck // cobra passes ctx to the commands
	if c.stopProgress != nil {
		c.stopProgress()
	}
	if err != nil && ctx.Err() != nil {
		err = interrupted(err)
	}
	return c.exitStatus(err)
}

// interrupted marks an error as the result of Ctrl-C, so that the hint does not
// blame the network.
func interrupted(err error) error {
	return advise(fmt.Errorf("interrupted: %w", err), "changes made before the interrupt are kept")
}

// Annotations of commands.
const (
	rawOutput  = "raw output"  // the output is not a table: it has no JSON form
	noProgress = "no progress" // the command reports its progress itself, or reads standard input
)

// rootCommand returns the command tree.
func (c *app) rootCommand() *cobra.Command {
	root := group("criticizer", "Show, repair and check reviews", `Shows reviews, repairs what failed, and checks an installation.

A command that runs for more than 2 seconds reports its progress on standard
error, except with --json.

Exit status: 0 done, 1 failed, 2 wrong usage.`,
		c.topCommand(), c.statusCommand(), c.whyCommand(), c.reviewCommand(), c.feedbackCommand(), c.statsCommand(),
		c.deadletterCommand(), c.deliveryCommand(),
		c.previewCommand(), c.rulesCommand(), c.allowlistCommand(), c.redactCommand(), c.artifactCommand(),
		c.doctorCommand(), c.evalCommand(), c.migrateCommand(), c.keysetCommand(),
	)
	root.Example = `  criticizer doctor
  criticizer status 4711
  criticizer help deadletter`
	root.Version = strings.TrimPrefix(cli.Version("criticizer"), "criticizer ")
	c.format = formatTable
	flags := root.PersistentFlags()
	flags.StringVar(&c.configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else /etc/criticizer/criticizer.yaml if it exists)")
	flags.FuncP("output", "o", "output `FORMAT`: table or json (default table)", func(text string) (err error) {
		c.format, err = oneOf(formatTable, formatJSON)(text)
		return err
	})
	flags.BoolVar(&c.json, "json", false, "short for -o json")
	must(root.RegisterFlagCompletionFunc("output", fixed(formatTable, formatJSON)))
	must(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	root.PersistentPreRunE = c.prepare
	return root
}

// group returns a command that only holds others.
func group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Long: long}
	cmd.AddCommand(commands...)
	return cmd
}

// prepare runs before every command.
func (c *app) prepare(cmd *cobra.Command, _ []string) error {
	if c.json {
		c.format = formatJSON
	}
	if c.format == formatJSON && cmd.Annotations[rawOutput] != "" {
		return badUsage("%s has no JSON output", cmd.CommandPath())
	}
	if c.progress != nil && c.format != formatJSON && cmd.Annotations[noProgress] == "" {
		c.stopProgress = c.progress(c.stderr, cmd.CommandPath())
	}
	return nil
}
