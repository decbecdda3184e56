// Devstack runs everything that Criticizer needs on one machine, for a first look
// (demo, up) and for tests (exec): a private Postgres, a real Temporal server, and
// simulations of Perforce, the model and the mail server.
//
// The commands are in demo.go and exec.go. Both open a stack (stack.go), whose
// parts are processes (process.go) or servers in this process (servers.go). demo
// and up add an environment (environment.go): the configuration of one depot and
// its worker.
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
  demo             review some changelists of a simulated depot, print the results, stop
  up               the same, and run until Ctrl-C
  exec -- CMD...   run CMD with a temporary Postgres and Temporal, and exit with its status;
                   their addresses are in CRITICIZER_TEST_DATABASE_URL and CRITICIZER_TEST_TEMPORAL_ADDRESS
  down             stop every devstack of this clone and the processes of one that was killed
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
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
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

// run runs one command. Results go to stdout, progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
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
		return fmt.Errorf("command %q: want demo, up, exec, down or clean (see devstack -h)", command)
	}
}
