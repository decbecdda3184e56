package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// attached programs use the input and output of devstack instead of a log.
	attached bool

	user *syscall.Credential // nil: the user of devstack
	stop syscall.Signal      // sent to its group to end it; default SIGTERM
	// stopTimeout is how long it may take to end after stop. Default 10 s.
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

// startProcess starts p with its output in dirs.log and its pid in dirs.run.
func startProcess(p program, dirs runDirs) (*process, error) {
	if p.stop == 0 {
		p.stop = syscall.SIGTERM
	}
	if p.stopTimeout == 0 {
		p.stopTimeout = 10 * time.Second
	}
	proc := &process{program: p, logPath: filepath.Join(dirs.log, p.name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(proc.logPath, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()
	hold, err := lockFile(filepath.Join(dirs.run, p.name+".pid"))
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

// end sends the stop signal, waits up to stopTimeout, and then kills the rest of
// the group.
func (p *process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, p.stop)
	select {
	case <-p.done:
	case <-time.After(p.stopTimeout):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// ended returns an error that says how the process ended, with the end of its log.
func (p *process) ended() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); %s", p.name, how, logTail(p.logPath))
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

// endLeftover stops the process recorded in pidPath, if it is still running. It
// reports whether it was.
func endLeftover(pidPath string) (bool, error) {
	pid, err := holder(pidPath)
	if err != nil || pid == 0 {
		return false, err
	}
	// The leader of the group may have ended before its children.
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, fmt.Errorf("stop process group %d of a killed devstack: %w", pid, err)
		}
		for range 50 {
			if still, err := holder(pidPath); err != nil || still == 0 {
				return true, err
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return false, fmt.Errorf("process group %d, recorded in %s, does not end: stop it by hand", pid, pidPath)
}
