package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// options are the values of the flags and the environment.
type options struct {
	root string // the project's clone, absolute

	// Ports of the parts. 0: the well-known one, or a free one if that is in use.
	postgresPort, temporalPort, temporalUIPort, inboxPort, smtpPort, modelPort int

	repo, depot string // see openDepot
	changes     int    // how many of its changelists; 0: a few

	databaseURL string // CRITICIZER_DATABASE_URL; empty: a private cluster
	getenv      func(string) string
}

func (o options) buildDir() string { return filepath.Join(o.root, "build") }
func (o options) binDir() string   { return filepath.Join(o.root, "build", "bin") }

// stateDir is the state of demo and up, which the next run uses again.
func (o options) stateDir() string { return filepath.Join(o.root, "build", "dev") }

// parseOptions reads the flags in args, or else from the environment. It returns
// the arguments after the flags: the command and its arguments.
func parseOptions(args []string, getenv func(string) string, stderr io.Writer) (options, []string, error) {
	opts := options{databaseURL: getenv("CRITICIZER_DATABASE_URL"), getenv: getenv}
	flags := flag.NewFlagSet("devstack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&opts.root, "root", ".", "the project's clone")
	flags.IntVar(&opts.postgresPort, "postgres-port", 0, "port of Postgres (default 5432, or a free one)")
	flags.IntVar(&opts.temporalPort, "temporal-port", 0, "port of Temporal (default 7233, or a free one)")
	flags.IntVar(&opts.temporalUIPort, "temporal-ui-port", 0, "port of Temporal's web page (default 8233, or a free one)")
	flags.IntVar(&opts.inboxPort, "inbox-port", 0, "port of the inbox's web page (default 8025, or a free one)")
	flags.IntVar(&opts.smtpPort, "smtp-port", 0, "port of the inbox for mail (default 1025, or a free one)")
	flags.IntVar(&opts.modelPort, "model-port", 0, "port of the simulated model (default 8026, or a free one)")
	flags.StringVar(&opts.repo, "repo", "", "git repository to review (default: this clone)")
	flags.StringVar(&opts.depot, "depot", "", "recorded depot to review")
	flags.IntVar(&opts.changes, "changes", 0, "number of changelists to review, the newest ones (default: a few)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, nil, exitCode(0)
		}
		return options{}, nil, exitCode(2) // the flag package has reported it
	}
	if err := setFromEnvironment(flags, getenv); err != nil {
		return options{}, nil, err
	}
	if opts.changes < 0 {
		return options{}, nil, fmt.Errorf("-changes %d is negative: want a number of changelists", opts.changes)
	}
	root, err := filepath.Abs(opts.root)
	if err != nil {
		return options{}, nil, fmt.Errorf("find the project's clone: %w", err)
	}
	opts.root = root
	if _, err := os.Stat(filepath.Join(root, "tools", "temporal", "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return options{}, nil, fmt.Errorf("%s is not a clone of Criticizer: run devstack in one, or name one with -root", root)
	}
	return opts, flags.Args(), nil
}

// setFromEnvironment sets each flag that is not in the arguments from its
// DEVSTACK_ variable.
func setFromEnvironment(flags *flag.FlagSet, getenv func(string) string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	flags.VisitAll(func(f *flag.Flag) {
		name := "DEVSTACK_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := getenv(name)
		if value == "" || given[f.Name] {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("read %s=%q: %w", name, value, err))
		}
	})
	return errors.Join(errs...)
}
