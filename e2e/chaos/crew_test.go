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
type crew struct {
	command string
	env     []string
	log     *os.File

	mu      sync.Mutex
	worker  *member
	standIn *member
	stopped bool
}

// A member is a running worker.
type member struct {
	cmd  *exec.Cmd
	died chan struct{} // closed when it has
}

// newCrew runs workers until the test ends.
func newCrew(t *testing.T, command string, env []string, logPath string) *crew {
	t.Helper()
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{command: command, env: env, log: log}
	var supervised sync.WaitGroup
	supervised.Go(c.supervise)
	t.Cleanup(func() {
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
		c.kill()
		c.dismiss()
		supervised.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(logPath); t.Failed() && err == nil {
			t.Logf("workers' log:\n%s", said)
		}
	})
	return c
}

func (c *crew) supervise() {
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
func (c *crew) start(place **member) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &member{exec.Command(c.command), make(chan struct{})}
	m.cmd.Env, m.cmd.Stdout, m.cmd.Stderr = c.env, c.log, c.log
	if c.stopped || m.cmd.Start() != nil {
		return nil
	}
	go func() { _ = m.cmd.Wait(); close(m.died) }()
	*place = m
	return m
}

func (m *member) kill() {
	if m != nil {
		_ = m.cmd.Process.Kill()
		<-m.died
	}
}

// kill returns when the worker is dead.
func (c *crew) kill() { c.at(&c.worker).kill() }

// stop has the worker come to an end, and does not wait for that.
func (c *crew) stop() { _ = c.at(&c.worker).cmd.Process.Signal(syscall.SIGTERM) }

// dismiss ends the stand-in, if there is one.
func (c *crew) dismiss() {
	c.at(&c.standIn).kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standIn = nil
}

func (c *crew) at(place **member) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *place
}

// freeze suspends the worker for a while and starts a stand-in. over is closed
// when the worker is awake and has had time to act on what it believes.
func (c *crew) freeze(during time.Duration) (over <-chan struct{}) {
	const awake = 2 * time.Second
	worker, done := c.at(&c.worker), make(chan struct{})
	_ = worker.cmd.Process.Signal(syscall.SIGSTOP)
	c.start(&c.standIn)
	time.AfterFunc(during, func() {
		_ = worker.cmd.Process.Signal(syscall.SIGCONT)
		time.Sleep(awake)
		close(done)
	})
	return done
}
