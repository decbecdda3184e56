package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

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
