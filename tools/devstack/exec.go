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

// execCommand runs args with its own Postgres and Temporal, so that any number can
// run at the same time, and returns the exit code as an error.
func execCommand(ctx context.Context, opts options, args []string, out *progress) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("exec needs a command, such as devstack exec -- go test")
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
		return err // its directory stays, for the logs
	}
	err = runInside(ctx, s, args, env)
	s.close()
	removeExecDir(s.dirs.base)
	return err
}

// startForTests starts the servers for tests and returns the variables with their
// addresses.
func startForTests(ctx context.Context, s *stack, opts options, temporal string) ([]string, error) {
	databaseURL, err := startPostgres(ctx, s, pgConfig{
		databaseURL: opts.databaseURL, port: opts.postgresPort,
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

// runInside runs args to its end. If ctx ends first, it ends the process group.
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
	defer command.end() // processes left in its group would hold the database
	select {
	case <-command.done:
		return asExitCode(args[0], command.err)
	case <-ctx.Done():
		s.out.say("stopping %s", args[0])
		return context.Cause(ctx)
	}
}

// asExitCode returns the exit code of a command as an error: 128 + signal, as in
// a shell, if a signal ended it.
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

// openExecStack removes the directories of earlier execs and opens a stack in a
// new one.
func openExecStack(ctx context.Context, buildDir string, out *progress) (context.Context, *stack, error) {
	// A directory that is not locked yet looks like an old one.
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
		return nil, fmt.Errorf("list directories of exec: %w", err)
	}
	return bases, nil
}

// removeExecDir removes the state of an exec that has ended.
func removeExecDir(base string) {
	for _, dir := range []string{base, outsideDir(base)} {
		_ = os.RemoveAll(dir) // sweepExecDirs tries again
	}
}

// sweepExecDirs stops and removes what earlier execs left in buildDir. It skips
// those that are running.
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
