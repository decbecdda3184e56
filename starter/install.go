package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings/trigger"
)

// An installer checks that the trigger works on this host, and has the lines of the
// trigger table.
type installer struct {
	program, configFile string // absolute paths; configFile is empty if there is none
	goos                string // of this host
	depotPath           string
	shelves             bool
	timeout             time.Duration
	stderr              io.Writer
	failed              int // checks
}

func (a *app) install() *cobra.Command {
	i := installer{goos: runtime.GOOS}
	var printLines bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Check this host for the trigger, and print its lines",
		Long: `Check that a trigger works on this host: program, configuration, spool and the
connection to Temporal. --print writes the lines for p4 triggers, which an
administrator of the Perforce server adds. Nothing is changed, except that a
missing spool directory is created.

Run it on the host of the Perforce server, as the account of that server. The
results are on standard error. The exit status is 1 if a check fails.`,
		Example: `  criticizer-starter --config /etc/criticizer/starter.yaml install --print --shelves`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := trigger.Load(a.configPath, a.getenv)
			if err != nil {
				return err
			}
			i.stderr = cmd.ErrOrStderr()
			lines, err := i.lines(a)
			if err == nil && printLines {
				_, err = io.WriteString(cmd.OutOrStdout(), lines)
			}
			if err != nil {
				return err
			}
			return i.check(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&printLines, "print", false, "print the lines of the trigger table")
	flags.BoolVar(&i.shelves, "shelves", false, "with a line that reviews shelves")
	flags.StringVar(&i.depotPath, "path", "//depot/...", "depot `PATH` of the lines: submits elsewhere run no trigger")
	flags.DurationVar(&i.timeout, "timeout", defaultTimeout, "how long the connection to Temporal may take")
	return cmd
}

// plainPath matches paths and names that need no quotes in the trigger table, which replaces
// variables between percent signs.
var plainPath = regexp.MustCompile(`^[\w./\\:~@+-]+$`)

// lines returns the lines of the trigger table. Their paths are absolute, because the
// trigger runs in another directory and environment.
func (i *installer) lines(a *app) (string, error) {
	var err error
	if i.program, err = os.Executable(); err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	command := i.program
	words, variables := []string{i.program}, []string{}
	for _, name := range []string{"TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE"} { // the Perforce server does not have them
		value := a.getenv(name)
		if value == "" {
			continue
		}
		if name == "TEMPORAL_CONFIG_FILE" {
			if value, err = filepath.Abs(value); err != nil {
				return "", fmt.Errorf("find the file of profiles: %w", err)
			}
		}
		words, variables = append(words, value), append(variables, name+"="+value)
	}
	switch set := strings.Join(variables, " "); {
	case set == "":
	case i.goos == "windows": // has no env
		i.report("variables", "the lines cannot set "+set+": set each for the service of the Perforce server", nil)
	default:
		command = "/usr/bin/env " + set + " " + command
	}
	file := trigger.Program.File(a.configPath, a.getenv)
	if _, err := os.Stat(file); err == nil { // else there is none: a.load has checked it
		if i.configFile, err = filepath.Abs(file); err != nil {
			return "", fmt.Errorf("find the configuration: %w", err)
		}
		words = append(words, i.configFile)
		command += " --config " + i.configFile
	}
	for _, word := range words {
		if !plainPath.MatchString(word) {
			return "", fmt.Errorf("%q has characters that need quotes in the trigger table: use another name or path, on Windows the short one", word)
		}
	}
	if !strings.HasPrefix(i.depotPath, "//") || strings.ContainsAny(i.depotPath, " \t\r\n\"") {
		return "", fmt.Errorf("--path %q: want a depot path such as //depot/main/..., without blanks and quotes", i.depotPath)
	}
	lines := fmt.Sprintf("\tcriticizer change-commit %s \"%s --trigger change-commit %%changelist%%\"\n", i.depotPath, command)
	if i.shelves {
		lines += fmt.Sprintf("\tcriticizer-shelf shelve-commit %s \"%s --trigger shelve-commit %%changelist%%\"\n", i.depotPath, command)
	}
	return lines, nil
}

func (i *installer) report(name, result string, err error) {
	if err != nil {
		i.failed++
		result = "error: " + err.Error()
	}
	fmt.Fprintf(i.stderr, "%-14s %s\n", name, result)
}

// check reports the result of each check and fails if one failed.
func (i *installer) check(ctx context.Context, cfg *trigger.Config) error {
	i.report("program", i.program, checkFile(i.program))
	if i.configFile != "" {
		i.report("configuration", i.configFile, checkFile(i.configFile))
	}
	if u, err := user.Current(); err == nil {
		i.report("account", u.Username+": the Perforce server has to run as this account", nil)
	}
	waiting, err := newSpool(cfg).check()
	i.report("spool", fmt.Sprintf("%s: %d of at most %d requests wait", cfg.Starter.SpoolDir, waiting, maxSpooled), err)

	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	begin := time.Now()
	n, err := connect(ctx, cfg)
	if err == nil {
		defer n.Close()
		_, err = n.Retention(ctx)
	}
	if err != nil {
		err = explainTimeout(ctx, cfg, err, i.timeout)
	}
	i.report("connection", fmt.Sprintf("Temporal at %s answered in %s of %s", cfg.Temporal.Address, time.Since(begin).Round(time.Millisecond), i.timeout), err)
	if err == nil {
		if idle := unserved(ctx, n); len(idle) > 0 {
			i.report("workers", "none serves the stages "+strings.Join(idle, ",")+": reviews wait until one starts", nil)
		}
	}
	if i.failed > 0 {
		return fmt.Errorf("%d of the checks above failed: correct what they name, and run the command again", i.failed)
	}
	return nil
}

// checkFile returns an error if any account could change what the Perforce server runs.
func checkFile(file string) error {
	for name := file; ; name = filepath.Dir(name) {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if secret.Exposed(info, 0o002) && info.Mode()&os.ModeSticky == 0 {
			return fmt.Errorf("every account can write %s and so change what the Perforce server runs: run chmod o-w %[1]q", name)
		}
		if name == filepath.Dir(name) {
			return nil
		}
	}
}
