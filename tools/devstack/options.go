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

// options are the flags and the environment.
type options struct {
	root string // the project's clone, absolute

	// Of each part; 0: the well-known one, or a free one if that is taken.
	postgresPort, temporalPort, temporalUIPort, inboxPort, smtpPort, modelPort int

	repo, depot string // what to review, see openDepot
	changes     int    // how many of its changelists; 0: a few

	databaseURL string // CRITICIZER_DATABASE_URL; empty: a private cluster
	getenv      func(string) string
}

func (o options) buildDir() string { return filepath.Join(o.root, "build") }
func (o options) binDir() string   { return filepath.Join(o.root, "build", "bin") }

// stateDir keeps what demo and up make; the next one goes on with it.
func (o options) stateDir() string { return filepath.Join(o.root, "build", "dev") }

// parseOptions reads the flags in args, and for those that are absent the
// environment. It returns what follows the flags: the command and its arguments.
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
	flags.IntVar(&opts.smtpPort, "smtp-port", 0, "port at which the inbox takes mail (default 1025, or a free one)")
	flags.IntVar(&opts.modelPort, "model-port", 0, "port of the stand-in model (default 8026, or a free one)")
	flags.StringVar(&opts.repo, "repo", "", "git repository to review (default: this clone)")
	flags.StringVar(&opts.depot, "depot", "", "recorded depot to review")
	flags.IntVar(&opts.changes, "changes", 0, "how many changelists to review, the newest (default: a few)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, nil, exitCode(0)
		}
		return options{}, nil, exitCode(2) // the flag package has told why
	}
	if err := setFromEnvironment(flags, getenv); err != nil {
		return options{}, nil, err
	}
	if opts.changes < 0 {
		return options{}, nil, fmt.Errorf("-changes %d is negative: want how many changelists to review", opts.changes)
	}
	root, err := filepath.Abs(opts.root)
	if err != nil {
		return options{}, nil, fmt.Errorf("find the project's clone: %w", err)
	}
	opts.root = root
	if _, err := os.Stat(filepath.Join(root, "tools", "temporal", "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return options{}, nil, fmt.Errorf("%s is not Criticizer's clone: run devstack there, or name it with -root", root)
	}
	return opts, flags.Args(), nil
}

// setFromEnvironment gives each flag that was not set the value of its
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
