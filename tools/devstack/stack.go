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

// A stack is a set of running parts. They are stopped in reverse order.
type stack struct {
	base   string // its state directory: log/ and run/ have one log and one pid file per child
	out    *progress
	lock   *os.File
	cancel context.CancelCauseFunc
	stops  []func() // one for each part
}

// openStack locks the state directory base and stops the processes that a killed
// devstack left there. The returned context ends when ctx ends or a part fails,
// with the reason as its cause. The caller closes the stack.
func openStack(ctx context.Context, base string, out *progress) (context.Context, *stack, error) {
	if err := errors.Join(os.MkdirAll(filepath.Join(base, "log"), 0o750), os.MkdirAll(filepath.Join(base, "run"), 0o750)); err != nil {
		return nil, nil, fmt.Errorf("make the state directory: %w", err)
	}
	lock, err := lockFile(filepath.Join(base, "devstack.lock"))
	if errors.Is(err, errLocked) {
		return nil, nil, fmt.Errorf("another devstack uses %s (%w): stop it with Ctrl-C or with make down", base, errLocked)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(setHolder(lock, os.Getpid()), endLeftovers(ctx, base, out)); err != nil {
		unlock(lock)
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stack{base: base, out: out, lock: lock, cancel: cancel}, nil
}

// start runs p as a part.
func (s *stack) start(p program) (*process, error) {
	proc, err := startProcess(p, s.base)
	if err != nil {
		return nil, err
	}
	s.keep(proc)
	return proc, nil
}

// keep makes proc a part. If it ends before close, the stack fails.
func (s *stack) keep(proc *process) {
	closing := make(chan struct{})
	s.add(func() { close(closing); proc.end() })
	go func() {
		<-proc.done
		select {
		case <-closing:
		default:
			s.cancel(proc.ended())
		}
	}()
}

// serve opens a part in this process and runs what open returns. If that returns
// before close, the stack fails. The part logs to its own file.
func (s *stack) serve(ctx context.Context, name string, open func(*slog.Logger) (func(context.Context) error, error)) error {
	file, err := os.OpenFile(filepath.Join(s.base, "log", name+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	run, err := open(slog.New(slog.NewTextHandler(file, nil)))
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // close ends it, in order
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = file.Close() }()
		err := run(ctx)
		if ctx.Err() == nil {
			s.cancel(fmt.Errorf("%s ended: %w; %s", name, cmp.Or(err, errors.New("no error")), logTail(file.Name())))
		}
	}()
	s.add(func() { cancel(); <-done })
	return nil
}

// add adds a part that stop ends.
func (s *stack) add(stop func()) { s.stops = append(s.stops, stop) }

// close stops every part, last first, and unlocks the state directory.
func (s *stack) close() {
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
	s.stops = nil
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
