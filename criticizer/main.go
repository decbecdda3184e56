// Command criticizer is the operator's tool: it shows reviews, repairs what
// failed, and checks an installation.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/docs"
	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/operator"
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
	out := &output{w: c.stdout}
	c.stdout = out
	err := cli.Execute(ctx, c.rootCommand(), args, c.stdout, c.stderr) //nolint:contextcheck // cobra passes ctx to the commands
	if err == nil && out.err != nil {
		err = advise(fmt.Errorf("write standard output: %w", out.err), "the output is incomplete: free space or name another file, and run the command again")
	}
	if c.stopProgress != nil {
		c.stopProgress()
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, errContinues) { // the hint must not blame the network
		err = advise(fmt.Errorf("interrupted: %w", err), "changes made before the interrupt are kept, and what a worker does continues")
	}
	return operator.Report(c.stderr, "criticizer", err)
}

// errContinues is the error of an interrupted wait for work that a worker does.
var errContinues = errors.New("interrupted: the work continues without this command")

// Annotations of commands.
const (
	rawOutput  = "raw output"  // the output is not a table: it has no JSON form
	noProgress = "no progress" // the command reports its progress itself, or reads standard input
)

// rootCommand returns the command tree.
func (c *app) rootCommand() *cobra.Command {
	root := group("criticizer", "Show, repair and check reviews", `Shows reviews, repairs what failed, and checks an installation.

A command that runs for more than 2 seconds reports its progress on standard
error, except with --json. The documentation is part of the command: criticizer
help README.md lists its pages.

Exit status: 0 done, 1 failed, 2 wrong usage.`)
	for _, part := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Reviews", []*cobra.Command{c.topCommand(), c.statusCommand(), c.whyCommand(), c.reviewCommand(), c.feedbackCommand(), c.statsCommand()}},
		{"Repair", []*cobra.Command{c.deadletterCommand(), c.deliveryCommand(), c.artifactCommand(), c.forgetCommand()}},
		{"What is reviewed, and how", []*cobra.Command{c.previewCommand(), c.rulesCommand(), c.allowlistCommand(), c.redactCommand(), c.evalCommand()}},
		{"Installation", []*cobra.Command{c.doctorCommand(), c.migrateCommand(), c.keysetCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: part.title, Title: part.title + ":"})
		for _, cmd := range part.commands {
			cmd.GroupID = part.title
			root.AddCommand(cmd)
		}
	}
	addPages(root)
	root.Example = `  criticizer doctor
  criticizer status 4711
  criticizer help deadletter
  criticizer help runbook.md`
	root.Version = strings.TrimPrefix(cli.Version("criticizer"), "criticizer ")
	flags := root.PersistentFlags()
	flags.StringVar(&c.configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else /etc/criticizer/criticizer.yaml if it exists)")
	const usage = "output `FORMAT`: table, wide (more columns of a list) or json (default table)"
	flags.FuncP("output", "o", usage, func(text string) error {
		format, err := oneOf("table", "wide", "json")(text)
		c.json, c.wide = format == "json", format == "wide"
		return err
	})
	flags.BoolVar(&c.json, "json", false, "short for -o json")
	must(root.RegisterFlagCompletionFunc("output", fixed("table", "wide", "json")))
	must(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	root.PersistentPreRunE = c.prepare
	return root
}

// addPages adds the pages of docs as topics of the command help.
func addPages(root *cobra.Command) {
	pages, err := fs.Glob(docs.Pages, "*.md")
	must(err)
	for _, name := range pages {
		text, err := docs.Pages.ReadFile(name)
		must(err)
		root.AddCommand(&cobra.Command{Use: name, Short: "The page " + name, Long: string(text), Hidden: true})
	}
}

// group returns a command that only holds others.
func group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Long: long}
	cmd.AddCommand(commands...)
	return cmd
}

// prepare runs before every command.
func (c *app) prepare(cmd *cobra.Command, _ []string) error {
	if c.json && cmd.Annotations[rawOutput] != "" {
		return badUsage("%s has no JSON output", cmd.CommandPath())
	}
	if c.progress != nil && !c.json && cmd.Annotations[noProgress] == "" {
		c.stopProgress = c.progress(c.stderr, cmd.CommandPath())
	}
	return nil
}
