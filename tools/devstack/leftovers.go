package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// down stops every devstack below the build directory, and the processes of those
// that were killed, and removes the state of exec.
func down(ctx context.Context, opts options, out *progress) error {
	execs, _ := filepath.Glob(filepath.Join(opts.buildDir(), "exec-*")) // the only error is a malformed pattern
	for _, base := range append(execs, opts.stateDir()) {
		if err := stopRunning(ctx, base, out); err != nil {
			return err
		}
		if err := endLeftovers(ctx, base, out); err != nil {
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

// stopRunning stops the devstack that holds base and waits for its end.
func stopRunning(ctx context.Context, base string, out *progress) error {
	lock := filepath.Join(base, "devstack.lock")
	pid, err := holder(lock)
	if err != nil || pid == 0 {
		return err
	}
	return out.during(fmt.Sprintf("stopping devstack %d", pid), func() error {
		return stop(ctx, lock, pid, syscall.SIGTERM, time.Minute)
	})
}

// endLeftovers stops the children of a killed devstack that held base.
func endLeftovers(ctx context.Context, base string, out *progress) error {
	pidFiles, _ := filepath.Glob(filepath.Join(base, "run", "*.pid"))
	for _, pidFile := range pidFiles {
		pid, err := holder(pidFile)
		if err != nil {
			return err
		}
		if pid == 0 {
			continue
		}
		out.say("stopping %s of a devstack that was killed", filepath.Base(pidFile))
		// The leader of the group may have ended before its children.
		if stop(ctx, pidFile, -pid, syscall.SIGINT, 5*time.Second) != nil {
			if err := stop(ctx, pidFile, -pid, syscall.SIGKILL, 5*time.Second); err != nil {
				return err
			}
		}
	}
	stopLeftoverEmbedded(ctx, base)
	return nil
}

// stop sends sig to the process pid, or the process group -pid, and waits until it
// releases the lock.
func stop(ctx context.Context, lock string, pid int, sig syscall.Signal, timeout time.Duration) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("process %d, recorded in %s, is still running after %s", pid, lock, timeout))
	defer cancel()
	for {
		if holding, err := holder(lock); err != nil || holding == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked")

// lockFile locks path and writes pid 0 into it; setHolder records the holder. The
// lock lasts until every copy of the returned file is closed, so a child that
// inherits the file holds the lock as long as it or one of its own children runs,
// even if devstack has been killed. A recorded pid counts only while the lock is
// held, so it is never the pid of an unrelated process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, setHolder(f, 0)
}

// unlock releases the lock, also for processes that inherited it.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

// setHolder records pid in the locked file f. The width is fixed, so that a reader
// never sees a part of a number.
func setHolder(f *os.File, pid int) error {
	if _, err := f.WriteAt(fmt.Appendf(nil, "%10d\n", pid), 0); err != nil {
		return fmt.Errorf("record the holder of a lock: %w", err)
	}
	return nil
}

// holder returns the pid that is recorded in path, or 0 if path is not locked.
func holder(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open lock: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, nil
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, fmt.Errorf("read lock: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
