// Devstack runs everything that Criticizer needs on one machine, for a first look
// (demo, up) and for tests (exec): a private Postgres, a real Temporal server, and
// simulations of Perforce, the model and the mail server.
//
// The commands are in commands.go. They open a stack (stack.go), whose parts are processes or
// servers in this process (servers.go). demo and up add an environment (environment.go): the
// configuration of one depot and its worker.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

const usage = `Usage: devstack [flags] COMMAND

Commands:
  demo             review some changelists of a simulated depot, print the results, stop
  up               the same, and run until Ctrl-C
  exec -- CMD...   run CMD with a temporary Postgres and Temporal, and exit with its status;
                   their addresses are in CRITICIZER_TEST_DATABASE_URL and CRITICIZER_TEST_TEMPORAL_ADDRESS
  down             stop every devstack of this clone
  clean            down, then remove build/

Flags:
`

// An exitCode is a failure that has been reported already: main only exits with it.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func main() {
	// The signals stay caught until the end: a second Ctrl-C must not interrupt
	// the shutdown.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	err := runCommand(ctx, os.Args[1:], os.Stdout, os.Stderr)
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	case ctx.Err() != nil:
		os.Exit(130) // err only reports the interruption
	default:
		fmt.Fprintf(os.Stderr, "devstack: error: %v\n", err)
		os.Exit(1)
	}
}

// runCommand runs one command. Results go to stdout, progress to stderr.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if slices.Equal(args, []string{"postgres"}) {
		return servePostgres(ctx, os.Stdin, stdout) // a process of startPostgres
	}
	opts, rest, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	command := ""
	if len(rest) > 0 {
		command = rest[0]
	}
	out := &progress{w: stderr}
	switch command {
	case "demo", "up":
		return demo(ctx, opts, out, stdout, command == "up")
	case "exec":
		return execCommand(ctx, opts, rest[1:], out)
	case "down":
		return down(ctx, opts, out)
	case "clean":
		return clean(ctx, opts, out)
	default:
		return fmt.Errorf("command %q: want demo, up, exec, down or clean (see devstack -h)", command)
	}
}

// options are the values of the flags and the environment.
type options struct {
	root string // the project's clone, absolute

	repo, depot string // see openDepot
	changes     uint   // how many of its changelists; 0: a few

	databaseURL string // CRITICIZER_DATABASE_URL; empty: a private cluster

	baseURL, model string // of the model endpoint; without baseURL the simulated model

	// forTests is set for exec: the parts use free ports instead of the well-known ones.
	forTests bool
}

func (o options) buildDir() string { return filepath.Join(o.root, "build") }
func (o options) binDir() string   { return filepath.Join(o.root, "build", "bin") }

// stateDir is the state of demo and up, which the next run uses again.
func (o options) stateDir() string { return filepath.Join(o.root, "build", "dev") }

// parseOptions reads the flags in args. It returns the arguments after the flags:
// the command and its arguments.
func parseOptions(args []string, stderr io.Writer) (options, []string, error) {
	opts := options{databaseURL: os.Getenv("CRITICIZER_DATABASE_URL")}
	opts.baseURL, opts.model = modelFrom(os.Getenv)
	flags := flag.NewFlagSet("devstack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&opts.repo, "repo", "", "git repository to review (default: a sample depot)")
	flags.StringVar(&opts.depot, "depot", "", "depot in a .txtar file to review, as tools/devstack/harbor.txtar is one")
	flags.UintVar(&opts.changes, "changes", 0, "number of changelists to review, the newest ones (default: a few)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, nil, exitCode(0)
		}
		return options{}, nil, exitCode(2) // the flag package has reported it
	}
	var err error
	if opts.root, err = os.Getwd(); err != nil {
		return options{}, nil, err
	}
	if _, err := os.Stat(filepath.Join(opts.root, "tools", "temporal", "go.mod")); err != nil {
		return options{}, nil, fmt.Errorf("run devstack in the root of a clone of Criticizer: %w", err)
	}
	return opts, flags.Args(), nil
}
