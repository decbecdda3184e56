// Command criticizer is the operator's tool: it shows reviews, repairs what
// failed, and checks an installation.
package main

import (
	"context"
	"errors"
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
	c := &console{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, progress: cli.Progress}
	status := c.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// run executes one command line and returns the exit status.
func (c *console) run(ctx context.Context, args []string) int {
	root := c.rootCommand()
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args for nil
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, c.helpErr)
	if c.stopProgress != nil {
		c.stopProgress()
	}
	if err != nil && ctx.Err() != nil {
		err = interrupted(err)
	}
	return c.exitStatus(cmd, err)
}

// interrupted marks an error as the result of Ctrl-C, so that the hint does not
// blame the network.
func interrupted(err error) error {
	return advise(fmt.Errorf("interrupted: %w", err), "changes made before the interrupt are kept")
}

// rootCommand returns the command tree.
func (c *console) rootCommand() *cobra.Command {
	c.format = formatTable
	root := group("criticizer", "Show, repair and check reviews", `Shows reviews, repairs what failed, and checks an installation.

A command that runs for more than 2 seconds reports its progress on standard
error, except with --json.

Exit status: 0 done, 1 failed, 2 wrong usage.`,
		c.topCommand(), c.statusCommand(), c.reviewCommand(), c.feedbackCommand(), c.statsCommand(),
		c.deadletterCommand(), c.deliveryCommand(), c.breakerCommand(), c.rewriteCommand(),
		c.previewCommand(), c.rulesCommand(), c.allowlistCommand(), c.redactCommand(), c.artifactCommand(),
		c.doctorCommand(), c.evalCommand(), c.migrateCommand(), c.keysetCommand(), manCommand(),
	)
	root.Example = `  criticizer doctor
  criticizer status 4711
  criticizer help deadletter`
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag = true, true, true
	root.Version = cli.Version("criticizer")
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&c.configPath, "config", "", "configuration `FILE` (default $CRITICIZER_CONFIG, else /etc/criticizer/criticizer.yaml if it exists)")
	flags.VarP(newValue(&c.format, oneOf(formatTable, formatJSON)), "output", "o", "output `FORMAT`: table or json")
	flags.BoolVar(&c.json, "json", false, "short for -o json")
	must(root.RegisterFlagCompletionFunc("output", fixed(formatTable, formatJSON)))
	must(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	root.PersistentPreRunE = c.prepare
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(c.help(root.HelpFunc()))
	root.SetFlagErrorFunc(explainFlag)
	// A group runs only to report a missing or unknown command, so its own usage line is enough.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}", "", 1))
	root.InitDefaultCompletionCmd()
	checkOperands(root)
	return root
}

// prepare runs before every command.
func (c *console) prepare(cmd *cobra.Command, _ []string) error {
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

// Annotations of commands.
const (
	commandGroup = "group"       // the command only holds others
	rawOutput    = "raw output"  // the command's output is not a table: there is no JSON form
	noProgress   = "no progress" // the command reports its progress itself, or reads standard input
)

// group returns a command that only holds other commands.
func group(name, short, long string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " COMMAND", Short: short, Long: long, DisableFlagsInUseLine: true,
		Args: cobra.ArbitraryArgs, RunE: unknownCommand, SuggestionsMinimumDistance: 2,
		Annotations: map[string]string{commandGroup: "yes", noProgress: "yes"},
	}
	cmd.AddCommand(children...)
	return cmd
}

// checkOperands has every command below cmd check its operands, and makes a
// command that cannot run a group.
func checkOperands(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		if !child.Runnable() { // cobra's command completion
			child.Args, child.RunE = cobra.ArbitraryArgs, unknownCommand
			child.Annotations = map[string]string{commandGroup: "yes", noProgress: "yes"}
			child.SuggestionsMinimumDistance = 2
		}
		if child.Args == nil {
			child.Args = operands
		}
		checkOperands(child)
	}
}

// operands accepts what the usage line names: "[NAME]" is optional, "NAME..."
// may be repeated.
func operands(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	least, most := 0, len(names)
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		if strings.Contains(name, "...") {
			most = len(args)
		}
	}
	switch {
	case len(names) == 0 && len(args) > 0:
		return badUsage("%s takes no arguments: got %q", cmd.CommandPath(), args[0])
	case len(args) < least || len(args) > most:
		return badUsage("%s wants %s: got %s", cmd.CommandPath(), strings.Join(names, " "), plural(len(args), "argument"))
	}
	return nil
}

// helpCommand replaces cobra's, which reports an unknown command with status 0.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Print the help of a command", Annotations: map[string]string{noProgress: "yes", rawOutput: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(of, rest)
			}
			return of.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, _, _ := cmd.Root().Find(args)
			var names []string
			for _, child := range of.Commands() {
				names = append(names, child.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// help prints the help of a command, unless an operand shows that the command is
// mistyped: "criticizer deadletter lst --help".
func (c *console) help(printHelp func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if typed := cmd.Flags().Args(); cmd.Annotations[commandGroup] != "" && len(typed) > 0 {
			c.helpErr = unknownCommand(cmd, typed)
			return
		}
		printHelp(cmd, args)
	}
}
