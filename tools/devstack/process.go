package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/cli"
)

// A program describes a child process and how to stop it.
type program struct {
	name string // of its log and pid file
	path string
	args []string
	env  []string // nil: the environment of devstack
	dir  string
	user *syscall.Credential // nil: the user of devstack
	// attached programs use the input and output of devstack instead of a log.
	attached bool
	// stopTimeout is how long it may take to end after SIGINT. Default 20 s.
	stopTimeout time.Duration
}

// A process is a running program in its own process group: its children are
// stopped with it, and a Ctrl-C in the terminal reaches only devstack, which stops
// the parts in order.
type process struct {
	program
	logPath string
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read it after done
}

// startProcess starts p with its output in base/log and its pid in base/run.
func startProcess(p program, base string) (*process, error) {
	p.stopTimeout = cmp.Or(p.stopTimeout, 20*time.Second)
	proc := &process{program: p, logPath: filepath.Join(base, "log", p.name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(proc.logPath, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()
	hold, err := lockFile(filepath.Join(base, "run", p.name+".pid"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = hold.Close() }() // the child has its own copy, see lockFile

	proc.cmd = exec.Command(p.path, p.args...)
	proc.cmd.Env, proc.cmd.Dir = p.env, p.dir
	proc.cmd.Stdout, proc.cmd.Stderr = log, log
	if p.attached {
		proc.cmd.Stdin, proc.cmd.Stdout, proc.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	proc.cmd.ExtraFiles = []*os.File{hold}
	proc.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user}
	if err := proc.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		proc.err = proc.cmd.Wait()
		close(proc.done)
	}()
	if err := setHolder(hold, proc.cmd.Process.Pid); err != nil {
		proc.end()
		return nil, err
	}
	return proc, nil
}

// end sends SIGINT, waits up to stopTimeout, and then kills the rest of the group.
// For Postgres, SIGINT is the fast shutdown: it does not wait for clients.
func (p *process) end() {
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
func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p, "==> "+format+"\n", args...)
}

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

// detail prints one line that belongs to the last one.
func (p *progress) detail(format string, args ...any) {
	fmt.Fprintf(p, "    "+format+"\n", args...)
}
