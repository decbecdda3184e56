package e2e

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A supervisor runs the workers of an installation: the first, which it restarts
// whenever it exits, and a second while the first is frozen.
type supervisor struct {
	command string
	env     []string
	log     *os.File

	mu            sync.Mutex
	first, second *process
	stopped       bool
}

// A process is a running worker.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has
}

// newSupervisor runs workers until the test ends.
func newSupervisor(t *testing.T, command string, env []string, logPath string) *supervisor {
	t.Helper()
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{command: command, env: env, log: log}
	var supervised sync.WaitGroup
	supervised.Go(s.run)
	t.Cleanup(func() {
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.kill()
		s.stopSecond()
		supervised.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(logPath); t.Failed() && err == nil {
			t.Logf("log of the workers:\n%s", text)
		}
	})
	return s
}

func (s *supervisor) run() {
	for {
		p := s.start(&s.first)
		if p == nil {
			return
		}
		<-p.exited
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts a worker unless the supervisor is stopped.
func (s *supervisor) start(slot **process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &process{exec.Command(s.command), make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = s.env, s.log, s.log
	if s.stopped || p.cmd.Start() != nil {
		return nil
	}
	go func() { _ = p.cmd.Wait(); close(p.exited) }()
	*slot = p
	return p
}

func (p *process) kill() {
	if p != nil {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// kill returns when the first worker has exited.
func (s *supervisor) kill() { s.get(&s.first).kill() }

// stop sends SIGTERM and does not wait.
func (s *supervisor) stop() { _ = s.get(&s.first).cmd.Process.Signal(syscall.SIGTERM) }

// stopSecond kills the second worker if it runs.
func (s *supervisor) stopSecond() {
	s.get(&s.second).kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second = nil
}

func (s *supervisor) get(slot **process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *slot
}

// freeze suspends the first worker for a while and starts the second. over is closed
// when the first has resumed and had time to act on its stale state.
func (s *supervisor) freeze(during time.Duration) (over <-chan struct{}) {
	const afterResume = 2 * time.Second
	worker, done := s.get(&s.first), make(chan struct{})
	_ = worker.cmd.Process.Signal(syscall.SIGSTOP)
	s.start(&s.second)
	time.AfterFunc(during, func() {
		_ = worker.cmd.Process.Signal(syscall.SIGCONT)
		time.Sleep(afterResume)
		close(done)
	})
	return done
}
