package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// execCommand runs args with its own Postgres and Temporal, so that any number can
// run at the same time, and returns the exit code as an error.
func execCommand(ctx context.Context, opts options, args []string, out *progress) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("exec needs a command, such as devstack exec -- go test")
	}
	opts.forTests = true
	ctx, s, err := openStack(ctx, filepath.Join(opts.buildDir(), "exec-"+rand.Text()), out)
	if err != nil {
		return err
	}
	env, err := startForTests(ctx, s, opts)
	if err != nil {
		s.close()
		return err // its directory stays, for the logs
	}
	err = runInside(ctx, s, args, env)
	s.close()
	_ = removeState(s.base) // down tries again
	return err
}

// startForTests starts the servers for tests and returns the variables with their
// addresses.
func startForTests(ctx context.Context, s *stack, opts options) ([]string, error) {
	command := obtainTemporal(ctx, s, opts)
	databaseURL, err := startPostgres(ctx, s, opts)
	if err != nil {
		return nil, err
	}
	server, err := startTemporal(ctx, s, opts, command)
	if err != nil {
		return nil, err
	}
	return []string{
		"CRITICIZER_TEST_DATABASE_URL=" + databaseURL,
		"CRITICIZER_TEST_TEMPORAL_ADDRESS=" + server.address,
		"CRITICIZER_TEST_TEMPORAL_COMMAND=" + server.command,
		"CRITICIZER_TEST_TEMPORAL_UI=" + server.uiURL,
	}, nil
}

// runInside runs args to its end. If ctx ends first, it ends the process group.
func runInside(ctx context.Context, s *stack, args, env []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	command, err := startProcess(program{
		name: "command", path: path, args: args[1:], env: append(os.Environ(), env...), attached: true,
	}, s.base)
	if err != nil {
		return err
	}
	defer command.end() // processes left in its group would hold the database
	select {
	case <-ctx.Done():
		s.out.say("stopping %s", args[0])
		return context.Cause(ctx)
	case <-command.done:
	}
	if exit, ok := errors.AsType[*exec.ExitError](command.err); ok {
		return exitCode(max(exit.ExitCode(), 1)) // -1 if a signal ended it
	}
	return command.err
}
