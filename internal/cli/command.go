// Package cli is what our commands have in common: how they parse the command
// line, report errors and progress, and describe their build.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A UsageError is an error in the command line. The exit status is 2.
type UsageError struct {
	Err  error
	Hint string // empty: refer to the help of the command
}

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e UsageError) Unwrap() error { return e.Err }

// Execute runs the command that args name. Every error that cobra returns before
// it calls the command, such as an unknown flag, becomes a [UsageError].
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	root.SetOut(stdout) // before Prepare: cobra's command completion keeps it
	root.SetErr(stderr)
	Prepare(root)
	called, before := false, root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
			return err // as a usage error: cobra checks them after the command's PreRunE
		}
		called = true
		if before == nil {
			return nil
		}
		return before(cmd, args)
	}
	var helpErr error // the function that prints the help returns none
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if operands := cmd.Flags().Args(); isGroup(cmd) && len(operands) > 0 {
			helpErr = unknownCommand(cmd, operands)
			return
		}
		printHelp(cmd, args)
	})
	root.SetArgs(append([]string{}, args...)) // not nil: cobra replaces nil by os.Args
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, helpErr)
	usage, wrong := errors.AsType[UsageError](err)
	if wrong = wrong || err != nil && !called && helpErr == nil; wrong && usage.Hint == "" {
		return UsageError{err, "see " + cmd.CommandPath() + " --help"}
	}
	return err
}

// Prepare completes a command tree: commands check their operands, and a group
// without a subcommand is an error. Cobra prints the help of a group instead, with
// exit status 0, even for an unknown subcommand.
func Prepare(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(explainFlag)
	if root.HasSubCommands() {
		root.InitDefaultCompletionCmd()
		root.SetHelpCommand(helpCommand())
	}
	// The usage line of a group is enough.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}", "", 1))
	prepare(root)
}

func prepare(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
	switch {
	case !cmd.Runnable() && cmd.HasSubCommands():
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, unknownCommand
		cmd.SuggestionsMinimumDistance = 2
		cmd.Annotations = map[string]string{group: "yes"}
		cmd.DisableFlagsInUseLine = true
		if !strings.Contains(cmd.Use, " ") {
			cmd.Use += " COMMAND"
		}
	case cmd.Args == nil:
		cmd.Args = Operands
	}
}

// group is the annotation of a command that only holds others.
const group = "group"

func isGroup(cmd *cobra.Command) bool { return cmd.Annotations[group] != "" }

// unknownCommand reports the first operand of a group, which names no command.
func unknownCommand(of *cobra.Command, operands []string) error {
	if len(operands) == 0 {
		return UsageError{Err: fmt.Errorf("%s wants a command", of.CommandPath())}
	}
	err := UsageError{Err: fmt.Errorf("unknown command %q for %s", operands[0], of.CommandPath())}
	if near := of.SuggestionsFor(operands[0]); len(near) > 0 {
		err.Hint = fmt.Sprintf("did you mean %s? %s --help lists the commands", strings.Join(near, " or "), of.CommandPath())
	}
	return err
}

// Operands accepts what the usage line names: "[NAME]" is optional, "NAME..." may
// be repeated.
func Operands(cmd *cobra.Command, args []string) error {
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
		return UsageError{Err: fmt.Errorf("%s takes no arguments: got %q", cmd.CommandPath(), args[0])}
	case len(args) < least || len(args) > most:
		return UsageError{Err: fmt.Errorf("%s wants %s: got %d arguments", cmd.CommandPath(), strings.Join(names, " "), len(args))}
	}
	return nil
}

// explainFlag names the flag of a parse error and the value that it takes.
func explainFlag(cmd *cobra.Command, err error) error {
	if operands := cmd.Flags().Args(); isGroup(cmd) && len(operands) > 0 {
		return unknownCommand(cmd, operands) // the flag may belong to the command that was meant
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return UsageError{Err: err}
	}
	want := map[string]string{
		"int": "want a whole number", "bool": "want true or false", "duration": "want a duration with its unit, such as 30s, 5m or 24h",
	}[bad.GetFlag().Value.Type()]
	if want == "" {
		want = bad.Unwrap().Error()
	}
	return UsageError{Err: fmt.Errorf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), want)}
}

// helpCommand replaces cobra's, which accepts an unknown command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Print the help of a command",
		Args: cobra.ArbitraryArgs,
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
			for _, sub := range of.Commands() {
				names = append(names, sub.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// An advised error has a hint of its own.
type advised struct {
	error
	hint string
}

func (a advised) Unwrap() error { return a.error }

// Advise adds a hint to err, which says what to do.
func Advise(err error, hint string) error { return advised{err, hint} }

// HintOf returns the hint of err, or "".
func HintOf(err error) string {
	if a, ok := errors.AsType[advised](err); ok {
		return a.hint
	}
	if usage, ok := errors.AsType[UsageError](err); ok {
		return usage.Hint
	}
	return ""
}

// Report writes err and its hint to stderr as program reports errors, and returns the exit
// status: 0 without an error, 2 for a [UsageError], 1 for any other.
func Report(stderr io.Writer, program string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: error: %v\n", program, err)
	if hint := HintOf(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	if _, usage := errors.AsType[UsageError](err); usage {
		return 2
	}
	return 1
}

// When a running command reports its progress for the first time, and how often after that.
const (
	firstReport    = 2 * time.Second
	reportInterval = 10 * time.Second
)

// Progress writes to w that a command is running, after 2 s and then every 10 s,
// until stop is called. Nothing is written after stop returns.
func Progress(w io.Writer, command string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	started := time.Now()
	go func() {
		defer close(ended)
		for wait := firstReport; ; wait = reportInterval {
			select {
			case <-done:
				return
			case <-time.After(wait):
				fmt.Fprintf(w, "%s: running for %s\n", command, time.Since(started).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// Version describes a program's build: its name, module version, commit and Go version.
func Version(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(program, info)
}

func versionOf(program string, info *debug.BuildInfo) string {
	text := program + " " + info.Main.Version
	if commit := setting(info, "vcs.revision"); commit != "" {
		text += fmt.Sprintf(", commit %.12s of %s", commit, setting(info, "vcs.time"))
		if setting(info, "vcs.modified") == "true" {
			text += ", with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// setting returns what the go command recorded in a program, or "".
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
