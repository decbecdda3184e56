package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// execCommand runs args with a Postgres and a Temporal of its own, so that any
// number of them run side by side, and returns its exit code as an error.
func execCommand(ctx context.Context, opts options, args []string, out *progress) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("exec needs a command, as in devstack exec -- go test")
	}
	temporal, err := temporalCommand(ctx, opts, out)
	if err != nil {
		return err
	}
	ctx, s, err := openExecStack(ctx, opts.buildDir(), out)
	if err != nil {
		return err
	}
	env, err := startForTests(ctx, s, opts, temporal)
	if err != nil {
		s.close()
		return err // its directory stays: the logs there say why
	}
	err = runInside(ctx, s, args, env)
	s.close()
	removeExecDir(s.dirs.base)
	return err
}

// startForTests starts what tests need and returns the variables that say where.
func startForTests(ctx context.Context, s *stack, opts options, temporal string) ([]string, error) {
	databaseURL, err := startPostgres(ctx, s, pgConfig{
		databaseURL: opts.databaseURL, port: opts.postgresPort, globs: pgGlobs, repository: pgRepository, cache: opts.buildDir(),
	})
	if err != nil {
		return nil, err
	}
	server, err := startTemporal(ctx, s, temporalConfig{command: temporal, port: opts.temporalPort, uiPort: opts.temporalUIPort})
	if err != nil {
		return nil, err
	}
	return []string{
		"CRITICIZER_TEST_DATABASE_URL=" + databaseURL,
		"CRITICIZER_TEST_TEMPORAL_ADDRESS=" + server.address,
		"CRITICIZER_TEST_TEMPORAL_COMMAND=" + temporal,
		"CRITICIZER_TEST_TEMPORAL_UI=" + server.uiURL,
	}, nil
}

// runInside runs args to its end; when ctx ends first, it ends the whole group.
func runInside(ctx context.Context, s *stack, args, env []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	command, err := startProcess(program{
		name: "command", path: path, args: args[1:], env: append(os.Environ(), env...), attached: true, stop: syscall.SIGINT,
	}, s.dirs)
	if err != nil {
		return err
	}
	defer command.end() // what it left running in its group would hold the database
	select {
	case <-command.done:
		return asExitCode(args[0], command.err)
	case <-ctx.Done():
		s.out.say("stopping %s", args[0])
		return context.Cause(ctx)
	}
}

// asExitCode turns the end of a command into the code devstack ends with; one
// that a signal ended gets the shell's 128 + signal.
func asExitCode(name string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", name, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitCode(128 + int(status.Signal()))
	}
	return exitCode(exit.ExitCode())
}

// openExecStack opens a stack in a new directory, after removing what earlier
// ones left behind.
func openExecStack(ctx context.Context, buildDir string, out *progress) (context.Context, *stack, error) {
	// A directory that is made but not locked yet looks like a left-over one.
	lock, err := awaitLock(ctx, filepath.Join(buildDir, "exec.lock"))
	if err != nil {
		return nil, nil, err
	}
	defer unlock(lock)
	if err := sweepExecDirs(buildDir, out); err != nil {
		return nil, nil, err
	}
	return openStack(ctx, filepath.Join(buildDir, "exec-"+rand.Text()), out)
}

// execDirs lists the state directories of exec.
func execDirs(buildDir string) ([]string, error) {
	bases, err := filepath.Glob(filepath.Join(buildDir, "exec-*"))
	if err != nil {
		return nil, fmt.Errorf("look for what was left behind: %w", err)
	}
	return bases, nil
}

// removeExecDir removes the state of an exec that has ended.
func removeExecDir(base string) {
	for _, dir := range []string{base, outsideDir(base)} {
		_ = os.RemoveAll(dir) // sweepExecDirs tries again
	}
}

// sweepExecDirs stops and removes what earlier execs left in buildDir, except
// for those that still run.
func sweepExecDirs(buildDir string, out *progress) error {
	bases, err := execDirs(buildDir)
	if err != nil {
		return err
	}
	for _, base := range bases {
		lock, err := lockFile(filepath.Join(base, "devstack.lock"))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = endLeftovers(runDirs{run: filepath.Join(base, "run")}, out)
		unlock(lock)
		if err != nil {
			return err
		}
		removeExecDir(base)
	}
	return nil
}
