package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/cli"
)

// A stack is a set of running parts. They are stopped in reverse order.
type stack struct {
	base   string // its state directory; log/ has one log per part
	out    *progress
	lock   *os.File
	cancel context.CancelCauseFunc
	stops  []func() // one for each part
	// stopTimeout is how long a process may take to end after SIGINT.
	stopTimeout time.Duration
}

// lockName is the file of a state directory that a devstack locks. It holds the process ID.
const lockName = "devstack.lock"

// openStack locks the state directory base. The returned context ends when ctx ends or a
// part fails, with the reason as its cause. The caller closes the stack.
func openStack(ctx context.Context, base string, out *progress) (context.Context, *stack, error) {
	if err := os.MkdirAll(filepath.Join(base, "log"), 0o750); err != nil {
		return nil, nil, fmt.Errorf("make the state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(base, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("lock the state directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("another devstack uses %s: stop it with Ctrl-C or with make down", base), lock.Close())
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%10d", os.Getpid()), 0); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stack{base: base, out: out, lock: lock, cancel: cancel, stopTimeout: 20 * time.Second}, nil
}

// holder returns the process ID of the devstack that has locked base, or 0.
func holder(base string) (int, error) {
	f, err := os.Open(filepath.Join(base, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0, nil
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
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
	_ = s.lock.Close()
}

// serve runs a part in this process. If run returns before close, the stack fails.
func (s *stack) serve(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // close ends it, in order
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); ctx.Err() == nil {
			s.cancel(fmt.Errorf("%s ended: %w", name, cmp.Or(err, errors.New("no error"))))
		}
	}()
	s.add(func() { cancel(); <-done })
}

// A process is a running program in its own process group: its children are
// stopped with it, and a Ctrl-C in the terminal reaches only devstack, which stops
// the parts in order.
type process struct {
	name, logPath string
	cmd, guard    *exec.Cmd
	stopTimeout   time.Duration
	done          chan struct{} // closed when it has ended
	err           error         // how it ended; read it after done
}

// run starts cmd as a part. Its output goes to a log, unless it has an output already. If it
// ends before close, the stack fails.
func (s *stack) run(name string, cmd *exec.Cmd) (*process, error) {
	proc, err := s.start(name, cmd)
	if err != nil {
		return nil, err
	}
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
	return proc, nil
}

// start starts cmd and its guard. The guard is a shell that waits until its standard input
// ends, which only happens when devstack has been killed, and then ends the process group.
func (s *stack) start(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, logPath: filepath.Join(s.base, "log", name+".log"), cmd: cmd, stopTimeout: s.stopTimeout, done: make(chan struct{})}
	if cmd.Stdout == nil {
		log, err := os.Create(p.logPath)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		defer func() { _ = log.Close() }()
		cmd.Stdout, cmd.Stderr = log, log
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	p.guard = exec.Command("/bin/sh", "-c", `read -r _; kill -INT "-$0"; sleep 5; kill -KILL "-$0"`, fmt.Sprint(cmd.Process.Pid))
	p.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_, err := p.guard.StdinPipe() // open until end
	if err == nil {
		err = p.guard.Start()
	}
	if err != nil {
		p.end()
		return nil, fmt.Errorf("guard %s: %w", name, err)
	}
	return p, nil
}

// end sends SIGINT, waits up to stopTimeout, and then kills the rest of the group.
func (p *process) end() {
	if p.guard.Process != nil {
		_ = p.guard.Process.Kill()
		_ = p.guard.Wait()
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(p.stopTimeout):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// ended returns an error that says how the process ended, with the end of its log.
func (p *process) ended() error {
	return fmt.Errorf("%s ended (%v); %s", p.name, p.cmd.ProcessState, logTail(p.logPath))
}

// awaitReady polls ready until it returns nil. It returns an error with the end of
// the log after the timeout, or if ctx or the process ends.
func (p *process) awaitReady(ctx context.Context, deadline time.Duration, ready func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for {
		err := ready(waiting)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-waiting.Done():
			return fmt.Errorf("%s is not ready after %s: %w; %s", p.name, deadline, err, logTail(p.logPath))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitLog waits until the log has a text.
func (p *process) awaitLog(ctx context.Context, deadline time.Duration, text string) error {
	return p.awaitReady(ctx, deadline, func(context.Context) error {
		log, err := os.ReadFile(p.logPath)
		if err == nil && !bytes.Contains(log, []byte(text)) {
			err = errors.New("it is starting")
		}
		return err
	})
}

// logTail returns the name of a log and its last lines.
func logTail(logPath string) string {
	const lines = 12
	data, err := os.ReadFile(logPath)
	if err != nil {
		return "its log is " + logPath
	}
	all := strings.Split(string(bytes.TrimSpace(data)), "\n")
	last := all[max(0, len(all)-lines):]
	return fmt.Sprintf("its log %s ends:\n    %s", logPath, strings.Join(last, "\n    "))
}

// run runs cmd and returns what it prints. When its context ends, cmd ends its own
// children. The error has what cmd wrote to standard error.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("run %s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// goBuild runs go build with args in dir. what names the result.
func goBuild(ctx context.Context, out *progress, what, dir string, args ...string) error {
	return out.during("building "+what, func() error {
		// Version stamping runs git, which fails in a clone that belongs to another user.
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as make build
		if _, err := run(ctx, cmd); err != nil {
			return fmt.Errorf("build %s: %w", what, err)
		}
		return nil
	})
}

// progress prints what devstack does.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

// say prints one line.
func (p *progress) say(format string, args ...any) { fmt.Fprintf(p, "==> "+format+"\n", args...) }

// detail prints one line that belongs to the last one.
func (p *progress) detail(format string, args ...any) { fmt.Fprintf(p, "    "+format+"\n", args...) }

// during runs f and reports every few seconds that it is running. The label is
// what f does: "building temporal".
func (p *progress) during(label string, f func() error) error {
	p.say("%s", label)
	defer cli.Progress(p, "    still "+label)()
	return f()
}

// Write implements [io.Writer].
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(text)
}
