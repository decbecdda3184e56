package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// runDirs are the directories of a stack.
type runDirs struct {
	base string // everything below
	log  string // one file per child
	run  string // one pid file per child
}

// makeRunDirs makes the directories of a stack below base.
func makeRunDirs(base string) (runDirs, error) {
	dirs := runDirs{base: base, log: filepath.Join(base, "log"), run: filepath.Join(base, "run")}
	return dirs, errors.Join(makeOpenDir(dirs.log), makeOpenDir(dirs.run))
}

// makeOpenDir makes dir and its parents, open to all users.
func makeOpenDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Postgres may run as another user
		return fmt.Errorf("make a directory: %w", err)
	}
	return nil
}

// A stack is a set of running parts. They are stopped in reverse order.
type stack struct {
	dirs   runDirs
	out    *progress
	lock   *os.File
	cancel context.CancelCauseFunc
	parts  []part
}

type part struct {
	name string
	stop func()
}

// openStack locks the state directory base and stops the processes that a killed
// devstack left there. The returned context ends when ctx ends or a part fails,
// with the reason as its cause. The caller closes the stack.
func openStack(ctx context.Context, base string, out *progress) (context.Context, *stack, error) {
	dirs, err := makeRunDirs(base)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockFile(filepath.Join(base, "devstack.lock"))
	if errors.Is(err, errLocked) {
		return nil, nil, fmt.Errorf("another devstack uses %s (%w): stop it with Ctrl-C or with make down", base, errLocked)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(setHolder(lock, os.Getpid()), endLeftovers(dirs, out)); err != nil {
		unlock(lock)
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stack{dirs: dirs, out: out, lock: lock, cancel: cancel}, nil
}

// start runs p as a part. If p ends before close, the stack fails.
func (s *stack) start(p program) (*process, error) {
	proc, err := startProcess(p, s.dirs)
	if err != nil {
		return nil, err
	}
	closing := make(chan struct{})
	s.add(p.name, func() { close(closing); proc.end() })
	go func() {
		<-proc.done
		select {
		case <-closing:
		default:
			s.cancel(proc.ended())
		}
	}()
	return proc, nil
}

// serve runs a part in this process. If run returns before close, the stack
// fails. The part logs to its own file.
func (s *stack) serve(ctx context.Context, name string, run func(context.Context, *slog.Logger) error) error {
	file, err := os.OpenFile(filepath.Join(s.dirs.log, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // close ends it, in order
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = file.Close() }()
		err := run(ctx, slog.New(slog.NewTextHandler(file, nil)))
		if ctx.Err() == nil {
			s.cancel(fmt.Errorf("%s ended: %w; %s", name, cmp.Or(err, errors.New("no error")), logTail(file.Name())))
		}
	}()
	s.add(name, func() { cancel(); <-done })
	return nil
}

// add adds a part that stop ends.
func (s *stack) add(name string, stop func()) {
	s.parts = append(s.parts, part{name, stop})
}

// close stops every part, last first, and unlocks the state directory.
func (s *stack) close() {
	for _, p := range slices.Backward(s.parts) {
		p.stop()
	}
	s.parts = nil
	s.cancel(nil)
	unlock(s.lock)
}

// awaitReady polls ready until it returns nil. It returns an error with the end of
// proc's log after the timeout, or if ctx or proc ends.
func awaitReady(ctx context.Context, proc *process, deadline time.Duration, ready func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for {
		err := ready(waiting)
		if err == nil {
			return nil
		}
		select {
		case <-proc.done:
			return proc.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-waiting.Done():
			return fmt.Errorf("%s is not ready after %s: %w; %s", proc.name, deadline, err, logTail(proc.logPath))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
