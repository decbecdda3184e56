package chaos

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A crew is the workers of a rig: one that is started again whenever it dies,
// and the stand-in for one that is frozen.
type supervisor struct {
	command string
	env     []string
	log     *os.File

	mu      sync.Mutex
	worker  *process
	second  *process
	stopped bool
}

// A member is a running worker.
type process struct {
	cmd  *exec.Cmd
	died chan struct{} // closed when it has
}

// newCrew runs workers until the test ends.
func newSupervisor(t *testing.T, command string, env []string, logPath string) *supervisor {
	t.Helper()
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	c := &supervisor{command: command, env: env, log: log}
	var supervised sync.WaitGroup
	supervised.Go(c.supervise)
	t.Cleanup(func() {
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
		c.kill()
		c.stopSecond()
		supervised.Wait()
		_ = log.Close()
		if progress, err := os.ReadFile(logPath); t.Failed() && err == nil {
			t.Logf("workers' log:\n%s", progress)
		}
	})
	return c
}

func (c *supervisor) supervise() {
	for {
		m := c.start(&c.worker)
		if m == nil {
			return
		}
		<-m.died
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts a worker in a place, unless the crew is stopped.
func (c *supervisor) start(place **process) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &process{exec.Command(c.command), make(chan struct{})}
	m.cmd.Env, m.cmd.Stdout, m.cmd.Stderr = c.env, c.log, c.log
	if c.stopped || m.cmd.Start() != nil {
		return nil
	}
	go func() { _ = m.cmd.Wait(); close(m.died) }()
	*place = m
	return m
}

func (m *process) kill() {
	if m != nil {
		_ = m.cmd.Process.Kill()
		<-m.died
	}
}

// kill returns when the worker is dead.
func (c *supervisor) kill() { c.at(&c.worker).kill() }

// stop has the worker come to an end, and does not wait for that.
func (c *supervisor) stop() { _ = c.at(&c.worker).cmd.Process.Signal(syscall.SIGTERM) }

// dismiss ends the stand-in, if there is one.
func (c *supervisor) stopSecond() {
	c.at(&c.second).kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.second = nil
}

func (c *supervisor) at(place **process) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *place
}

// freeze suspends the worker for a while and starts a stand-in. over is closed
// when the worker is awake and has had time to act on what it believes.
func (c *supervisor) freeze(during time.Duration) (over <-chan struct{}) {
	const awake = 2 * time.Second
	worker, done := c.at(&c.worker), make(chan struct{})
	_ = worker.cmd.Process.Signal(syscall.SIGSTOP)
	c.start(&c.second)
	time.AfterFunc(during, func() {
		_ = worker.cmd.Process.Signal(syscall.SIGCONT)
		time.Sleep(awake)
		close(done)
	})
	return done
}
