package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// downTimeout bounds how long a running devstack may take to stop its parts.
const downTimeout = 60 * time.Second

// endLeftovers stops the children of a devstack that was killed.
func endLeftovers(dirs runDirs, out *progress) error {
	pidFiles, err := filepath.Glob(filepath.Join(dirs.run, "*.pid"))
	if err != nil {
		return fmt.Errorf("list pid files: %w", err)
	}
	for _, pidFile := range pidFiles {
		was, err := endLeftover(pidFile)
		if err != nil {
			return err
		}
		if was {
			out.say("stopped %s of a devstack that was killed", filepath.Base(pidFile))
		}
	}
	return nil
}

// down stops every devstack below the build directory, and the processes of one
// that was killed.
func down(ctx context.Context, opts options, out *progress) error {
	bases, err := execDirs(opts.buildDir())
	if err != nil {
		return err
	}
	for _, base := range append(bases, opts.stateDir()) {
		if err := stopRunning(ctx, base, out); err != nil {
			return err
		}
		if err := endLeftovers(runDirs{run: filepath.Join(base, "run")}, out); err != nil {
			return err
		}
	}
	return sweepExecDirs(opts.buildDir(), out)
}

// stopRunning stops the devstack that holds base and waits for its end.
func stopRunning(ctx context.Context, base string, out *progress) error {
	lock := filepath.Join(base, "devstack.lock")
	pid, err := holder(lock)
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop devstack %d: %w", pid, err)
	}
	return out.during(fmt.Sprintf("stopping devstack %d", pid), func() error {
		deadline := time.After(downTimeout)
		for {
			if pid, err := holder(lock); err != nil || pid == 0 {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-deadline:
				return fmt.Errorf("devstack %d is still running after %s: read its logs before you kill it", pid, downTimeout)
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// clean stops everything and removes build/ and the data of Postgres outside of it.
func clean(ctx context.Context, opts options, out *progress) error {
	if err := down(ctx, opts, out); err != nil {
		return err
	}
	for _, dir := range []string{opts.buildDir(), outsideDir(opts.stateDir())} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clean: %w", err)
		}
	}
	return nil
}
