package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// lockFile takes the lock on path and writes pid 0 into it; setHolder names the
// holder. The lock lasts until every copy of the returned file is closed. A
// child that inherits it therefore holds it as long as it or any of its own
// children lives, whatever becomes of the process that started it. So a
// recorded pid is never a stranger's: it counts only while the lock is held.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, errLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, setHolder(f, 0)
}

// awaitLock takes the lock on path as soon as nobody else has it.
func awaitLock(ctx context.Context, path string) (*os.File, error) {
	if err := makeOpenDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	for {
		f, err := lockFile(path)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// unlock gives the lock back, whoever has inherited it.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

// setHolder records pid in the locked file f.
func setHolder(f *os.File, pid int) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("record the holder of a lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0); err != nil {
		return fmt.Errorf("record the holder of a lock: %w", err)
	}
	return nil
}

// holder returns who holds the lock on path, or 0 if nobody does.
func holder(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open lock: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, fmt.Errorf("read lock: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read lock %s: %w", path, err)
	}
	return pid, nil
}
