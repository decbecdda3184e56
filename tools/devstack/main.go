// Devstack runs everything Criticizer needs on one machine, for a newcomer
// (demo, up) and for tests (exec): a private Postgres, a real Temporal server,
// and stand-ins for Perforce, the model and the mail server.
//
// demo.go and exec.go have the commands. Both open a stack (stack.go), whose parts
// are processes (process.go) or served here; on it demo and up put a site (site.go):
// the installation of one depot, with its worker.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `Usage: devstack [flags] COMMAND

Commands:
  demo             review some changelists of a stand-in depot, print what came of them, stop
  up               the same, and stay until Ctrl-C
  exec -- CMD...   run CMD with a throw-away Postgres and Temporal, and exit as it does;
                   CMD finds them in CRITICIZER_TEST_DATABASE_URL and CRITICIZER_TEST_TEMPORAL_ADDRESS
  down             stop what runs, also what a killed devstack left behind
  clean            down, then remove build/

Flags (each also from the environment: -postgres-port is DEVSTACK_POSTGRES_PORT):
`

// An exitCode is a failure that has been told already: exit with it silently.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func main() {
	// The signals stay caught until the end: a second Ctrl-C must not cut off
	// the stopping of what was started.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	case ctx.Err() != nil:
		os.Exit(130) // err tells of nothing but the interruption
	default:
		fmt.Fprintf(os.Stderr, "devstack: error: %v\n", err)
		os.Exit(1)
	}
}

// run is main without the process around it. Results go to stdout, progress to
// stderr.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	opts, rest, err := parseOptions(args, getenv, stderr)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return errors.New("no command: want demo, up, exec, down or clean (devstack -h explains)")
	}
	out := &progress{w: stderr}
	switch command := rest[0]; command {
	case "demo":
		return demo(ctx, opts, out, stdout)
	case "up":
		return up(ctx, opts, out, stdout)
	case "exec":
		return execCommand(ctx, opts, rest[1:], out)
	case "down":
		return down(ctx, opts, out)
	case "clean":
		return clean(ctx, opts, out)
	default:
		return fmt.Errorf("unknown command %q: want demo, up, exec, down or clean (devstack -h explains)", command)
	}
}
