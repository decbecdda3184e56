// Command starter turns a submitted changelist into one review workflow. A
// Perforce change-commit trigger runs it; so may a person.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: starter [-config FILE] change-commit [flags] CHANGELIST

Starts the review of a submitted changelist and returns at once. Starting the
same review twice prints the one that exists and changes nothing.

flags of change-commit:
  -review-version N   version of the review (default 1); a rerun of a finished
                      review needs a higher one
  -key KEY            idempotency key and workflow ID
                      (default review-<server id>-<changelist>-v<version>)
  -server-id ID       Perforce server id in the default key (default: server_id
                      of the configuration)
  -wait               wait for the review's end and print its outcome
  -json               print one JSON object instead of a line

flags of starter:
  -config FILE        configuration (default $CRITICIZER_CONFIG, else
                      /etc/criticizer/criticizer.yaml if it exists)

Trigger table line:
  criticizer change-commit //depot/... "/opt/criticizer/starter change-commit %changelist%"

Exit status: 0 started or exists already, 1 failed, 2 wrong usage.
`

// errUsage marks errors that a look at the usage would have prevented.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "starter: error: %v\nhint: starter -h shows the usage\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "starter: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := newFlagSet("starter", stderr)
	configPath := flags.String("config", "", "")
	if err := parse(flags, args); err != nil {
		return err
	}
	switch command := flags.Arg(0); command {
	case "change-commit":
		return changeCommit(ctx, flags.Args()[1:], environment{*configPath, getenv, stdout, stderr})
	case "":
		return fmt.Errorf("%w: no command given", errUsage)
	default:
		return fmt.Errorf("%w: unknown command %q", errUsage, command)
	}
}

// environment is what the outside gives a command besides its arguments.
type environment struct {
	configPath     string
	getenv         func(string) string
	stdout, stderr io.Writer
}

func newFlagSet(name string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() { _, _ = io.WriteString(stderr, usage) }
	return flags
}

func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
