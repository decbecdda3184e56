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
	"runtime/debug"
	"syscall"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
)

const usage = `usage: starter [flags] change-commit [flags] CHANGELIST
       starter [flags] shelve-commit [flags] CHANGELIST
       starter [flags] drain
       starter [flags] rewrite enqueue -file FILE [-json]
       starter [flags] rewrite seal [-file FILE]
       starter [flags] rewrite result JOB_ID
       starter help
       starter -version

change-commit starts the review of a submitted changelist and returns at once.
Starting the same review twice prints the one that exists and changes nothing.
When Temporal cannot be reached the request is kept on disk (starter.spool_dir);
the next call that reaches Temporal starts it, or drain does.

shelve-commit does so for what is shelved in a pending changelist, once nobody
has shelved it again for a while (shelf.quiet): the last state is reviewed.

rewrite fills the queue of complaint rewrites and fetches its results
(docs/rewrite.md). enqueue reads a file of jobs, one JSON object a line, and
enqueues all of them or none; a job that exists stays as it is. seal prints what
a backend hands to criticizer.enqueue_rewrite for a message. result prints the
rewritten text of a completed job. -file - is standard input.

flags of change-commit:
  -review-version N   version of the review (default 1); a rerun of a finished
                      review needs a higher one
  -key KEY            idempotency key and workflow ID
                      (default review-<server id>-<changelist>-v<version>)
  -server-id ID       Perforce server id in the default key (default: server_id
                      of the configuration)
  -patience D         how long to try before the request is kept (default 2s)
  -wait               wait for the review's end and print its outcome; keeps
                      nothing
  -json               print one JSON object instead of a line

flags of shelve-commit:
  -server-id ID       Perforce server id in the workflow ID (default: server_id
                      of the configuration)
  -patience D         how long to try before the request is kept (default 2s)
  -json               print one JSON object instead of a line

flags:
  -config FILE        configuration (default $CRITICIZER_CONFIG, else
                      /etc/criticizer/criticizer.yaml if it exists)
  -trigger            never fail, print one line, end within 2s
  -version            print the version of this build, and end
  -h                  print this

trigger table lines:
  criticizer change-commit //depot/... "/opt/criticizer/criticizer-starter -trigger change-commit %changelist%"
  criticizer-shelf shelve-commit //depot/... "/opt/criticizer/criticizer-starter -trigger shelve-commit %changelist%"

examples:
  starter change-commit 4711
  starter change-commit -wait -review-version 2 4711
  starter shelve-commit 4712
  starter drain
  starter rewrite enqueue -file jobs.jsonl

Exit status: 0 started, exists already or kept for later, 1 failed, 2 wrong
usage; with -trigger always 0.
`

// errUsage marks errors that a look at the usage would have prevented.
var errUsage = errors.New("wrong usage")

func main() {
	hurry()
	go prepare()
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

// hurry leaves garbage where it is, for a submit waits, unless there is more of
// it than a trigger ever makes.
func hurry() {
	const enough = 256 << 20 // bytes
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(enough)
}

// prepare uses the messages that a start exchanges with Temporal for the first time,
// which takes milliseconds, while flags and configuration are read and the
// connection is made.
func prepare() {
	for _, m := range []proto.Message{
		&workflowservice.GetSystemInfoRequest{}, &workflowservice.GetSystemInfoResponse{},
		&workflowservice.StartWorkflowExecutionRequest{}, &workflowservice.StartWorkflowExecutionResponse{},
	} {
		proto.Size(m)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := newFlagSet("starter", stdout)
	configPath := flags.String("config", "", "")
	trigger := flags.Bool("trigger", false, "")
	version := flags.Bool("version", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *version {
		_, err := fmt.Fprintln(stdout, cli.Version("starter"))
		return err
	}
	command := func() error {
		return dispatch(ctx, flags.Args(), environment{*configPath, getenv, stdout, stderr, *trigger})
	}
	if *trigger {
		asTrigger(stdout, command)
		return nil
	}
	return command()
}

func dispatch(ctx context.Context, args []string, env environment) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no command given", errUsage)
	}
	switch args[0] {
	case "change-commit":
		return changeCommit(ctx, args[1:], env)
	case "shelve-commit":
		return shelveCommit(ctx, args[1:], env)
	case "drain":
		return drain(ctx, args[1:], env)
	case "rewrite":
		return rewrites(ctx, args[1:], env)
	case "help":
		_, err := io.WriteString(env.stdout, usage)
		return err
	}
	return fmt.Errorf("%w: unknown command %q", errUsage, args[0])
}

// environment is what the outside gives a command besides its arguments.
type environment struct {
	configPath     string
	getenv         func(string) string
	stdout, stderr io.Writer
	oneLine        bool // of what was started, for a submitter sees it
}

func loadConfig(env environment) (*config.Config, error) {
	cfg, err := config.Load(env.configPath, env.getenv)
	if err != nil {
		return nil, err
	}
	return cfg, cfg.Check(config.RoleStarter)
}

// newFlagSet prints the usage to stdout, for -h.
func newFlagSet(name string, stdout io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() { _, _ = io.WriteString(stdout, usage) }
	return flags
}

func parse(flags *flag.FlagSet, args []string) error {
	usage := flags.Usage
	flags.Usage = func() {} // not for errors, which have their hint
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage()
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, cli.ExplainFlags(flags, err))
	}
	return err
}
