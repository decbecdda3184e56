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

// Options are the flags. A port of 0 means: the well-known one, or a free one
// when that is taken.
type options struct {
	root string // the project's clone, absolute

	postgresPort, temporalPort, temporalUIPort int

	databaseURL string // CRITICIZER_DATABASE_URL; empty: a private cluster
}

func (o options) buildDir() string { return filepath.Join(o.root, "build") }
func (o options) binDir() string   { return filepath.Join(o.root, "build", "bin") }
func (o options) stateDir() string { return filepath.Join(o.root, "build", "dev") }

// parseOptions reads the flags in args, and for those that are absent the
// environment. It returns what follows the flags: the command and its arguments.
func parseOptions(args []string, getenv func(string) string, stderr io.Writer) (options, []string, error) {
	opts := options{databaseURL: getenv("CRITICIZER_DATABASE_URL")}
	flags := flag.NewFlagSet("devstack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&opts.root, "root", ".", "the project's clone")
	flags.IntVar(&opts.postgresPort, "postgres-port", 0, "port of Postgres (default 5432, or a free one)")
	flags.IntVar(&opts.temporalPort, "temporal-port", 0, "port of Temporal (default 7233, or a free one)")
	flags.IntVar(&opts.temporalUIPort, "temporal-ui-port", 0, "port of Temporal's web page (default 8233, or a free one)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, nil, exitCode(0)
		}
		return options{}, nil, exitCode(2) // the flag package has told why
	}
	if err := setFromEnvironment(flags, getenv); err != nil {
		return options{}, nil, err
	}
	root, err := filepath.Abs(opts.root)
	if err != nil {
		return options{}, nil, fmt.Errorf("find the project's clone: %w", err)
	}
	opts.root = root
	if _, err := os.Stat(filepath.Join(root, "tools", "go.mod")); errors.Is(err, fs.ErrNotExist) {
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
