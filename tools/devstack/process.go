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

// A program is what to run as a child, and how to stop it.
type program struct {
	name string // of its log and pid file
	path string
	args []string
	env  []string // nil: the environment of devstack
	dir  string
	// attached gives it the input and output of devstack instead of a log.
	attached bool

	user *syscall.Credential // nil: the user devstack runs as
	stop syscall.Signal      // asks its group to end; default SIGTERM
	// patience is how long it may take to end when asked. Default 10 s.
	patience time.Duration
}

// A process is a program that was started, in a process group of its own: what
// it starts is stopped with it, and a Ctrl-C in the terminal reaches devstack
// alone, which stops things in order.
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
	if p.patience == 0 {
		p.patience = 10 * time.Second
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

// end asks the process to end, waits as long as its patience lasts, and then
// kills what is left of its group.
func (p *process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, p.stop)
	select {
	case <-p.done:
	case <-time.After(p.patience):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// ended explains that the process ended when it should not have.
func (p *process) ended() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); %s", p.name, how, lastWords(p.logPath))
}

// lastWords names a log and quotes its end.
func lastWords(logPath string) string {
	const lines = 12
	data, err := os.ReadFile(logPath)
	if err != nil {
		return "its log is " + logPath
	}
	all := strings.Split(string(bytes.TrimSpace(data)), "\n")
	last := all[max(0, len(all)-lines):]
	return fmt.Sprintf("its log %s ends:\n    %s", logPath, strings.Join(last, "\n    "))
}

// endLeftover stops the process recorded in pidPath, if a devstack that was
// killed left it behind. It reports whether there was one.
func endLeftover(pidPath string) (bool, error) {
	pid, err := holder(pidPath)
	if err != nil || pid == 0 {
		return false, err
	}
	// The group's leader may be gone already and only its children left.
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, fmt.Errorf("stop process group %d left behind: %w", pid, err)
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
