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

// downPatience is how long a running devstack may take to stop its parts.
const downPatience = 60 * time.Second

// endLeftovers stops the children of a devstack that was killed.
func endLeftovers(dirs runDirs, out *progress) error {
	pidFiles, err := filepath.Glob(filepath.Join(dirs.run, "*.pid"))
	if err != nil {
		return fmt.Errorf("look for what was left behind: %w", err)
	}
	for _, pidFile := range pidFiles {
		was, err := endLeftover(pidFile)
		if err != nil {
			return err
		}
		if was {
			out.say("stopped %s, left behind by a devstack that was killed", filepath.Base(pidFile))
		}
	}
	return nil
}

// down stops every devstack that runs below the build directory, and whatever a
// killed one left behind there.
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

// stopRunning tells the devstack that holds base to stop, and waits for it.
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
		deadline := time.After(downPatience)
		for {
			if pid, err := holder(lock); err != nil || pid == 0 {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-deadline:
				return fmt.Errorf("devstack %d still runs after %s: look at it before you kill it", pid, downPatience)
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// clean stops everything and removes build/, and what was kept elsewhere
// because the user Postgres runs as could not enter build/.
func clean(ctx context.Context, opts options, out *progress) error {
	if err := down(ctx, opts, out); err != nil {
		return err
	}
	for _, dir := range []string{opts.buildDir(), outsideDir(opts.buildDir()), outsideDir(opts.stateDir())} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clean: %w", err)
		}
	}
	return nil
}
