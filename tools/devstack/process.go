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

// interruptible makes cmd end its own children when its context ends.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
}

// goBuild runs go build with args in dir. what names the result.
func goBuild(ctx context.Context, out *progress, what, dir string, args ...string) error {
	return out.during("building "+what, func() error {
		// Version stamping runs git, which fails in a clone that belongs to another user.
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as make build
		interruptible(cmd)
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", what, err, text)
		}
		return nil
	})
}

// progressEvery is how often a long step reports that it is running.
const progressEvery = 10 * time.Second

// progress prints what devstack does.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

// say prints one line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "==> "+format+"\n", args...)
}

// during runs f and reports every few seconds that it is running. The label is
// what f does: "building temporal".
func (p *progress) during(label string, f func() error) error {
	p.say("%s", label)
	start := time.Now()
	done := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.detail("still %s (%ds)", label, int(time.Since(start).Seconds()))
			}
		}
	})
	err := f()
	close(done)
	ticker.Wait()
	return err
}

// detail prints one line that belongs to the last one.
func (p *progress) detail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "    "+format+"\n", args...)
}
