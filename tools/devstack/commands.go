package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// demo reviews some changelists, prints the results, and stops. up runs until ctx ends, and
// with P4PORT it reviews changelists of that server.
func demo(ctx context.Context, opts options, out *progress, stdout io.Writer, up bool) error {
	open := openDepot
	if up && os.Getenv("P4PORT") != "" {
		open = realDepot
	}
	d, err := open(ctx, opts)
	if err != nil {
		return err
	}
	running, s, err := openStack(ctx, opts.stateDir(), out)
	if err != nil {
		return err
	}
	defer s.close()
	e, err := startEnvironment(running, s, opts, d)
	if err != nil {
		return err
	}
	err = e.reviewAndShow(running, stdout)
	switch {
	case up && errors.Is(err, errFailedReviews):
		out.say("%v", err) // the user can look into it
	case err != nil:
		return err
	case !up:
		fmt.Fprintf(stdout, "to read the mails in a browser: make up, with the same settings\n")
		return nil
	}
	fmt.Fprintf(stdout, `mail:     %s
reviews:  %s
review another changelist:
  %s --config %s change-commit --wait CHANGELIST
show one as an operator sees it:
  %s status CHANGELIST
Ctrl-C stops everything
`, e.inboxURL, e.temporalURL, e.command("starter"), e.config, e.tool)
	<-running.Done()
	out.say("stopping")
	if ctx.Err() != nil {
		return nil // stopped by the user
	}
	return context.Cause(running)
}

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
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	command, err := s.start("command", cmd)
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

// down stops every devstack below the build directory and removes the state of exec. The
// processes of a devstack that was killed have ended already: their guards ended them.
func down(ctx context.Context, opts options, out *progress) error {
	execs, _ := filepath.Glob(filepath.Join(opts.buildDir(), "exec-*")) // the only error is a malformed pattern
	for _, base := range append(execs, opts.stateDir()) {
		pid, err := holder(base)
		if err != nil {
			return err
		}
		if pid == 0 {
			continue
		}
		if err := out.during(fmt.Sprintf("stopping devstack %d", pid), func() error { return stop(ctx, base, pid) }); err != nil {
			return err
		}
	}
	for _, base := range execs {
		if err := removeState(base); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the devstack pid and waits until it has released its state directory.
func stop(ctx context.Context, base string, pid int) error {
	const timeout = time.Minute
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("process %d is still running after %s", pid, timeout))
	defer cancel()
	for {
		if holding, err := holder(base); err != nil || holding == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clean stops everything and removes build/ and the data of Postgres outside of it.
func clean(ctx context.Context, opts options, out *progress) error {
	if err := down(ctx, opts, out); err != nil {
		return err
	}
	return errors.Join(removeState(opts.stateDir()), os.RemoveAll(opts.buildDir()))
}

// removeState removes a state directory.
func removeState(base string) error {
	return errors.Join(os.RemoveAll(base), os.RemoveAll(rootDataDir(base)))
}
