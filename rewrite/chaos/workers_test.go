package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A supervisor runs worker processes and restarts each that exits.
type supervisor struct {
	env []string
	log *os.File

	mu      sync.Mutex
	workers map[*exec.Cmd]bool
	stopped bool
}

// newSupervisor runs n workers until the test ends.
func newSupervisor(t *testing.T, n int, env []string) *supervisor {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "workers.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := &supervisor{env: env, log: log, workers: map[*exec.Cmd]bool{}}
	var supervised sync.WaitGroup
	for range n {
		supervised.Go(c.supervise)
	}
	t.Cleanup(func() {
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
		c.kill()
		supervised.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("end of the workers' log:\n%s", text[max(0, len(text)-20_000):])
		}
	})
	return c
}

// supervise keeps one worker running.
func (c *supervisor) supervise() {
	for {
		cmd := c.start()
		if cmd == nil {
			return
		}
		_ = cmd.Wait()
		c.mu.Lock()
		delete(c.workers, cmd)
		c.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts a worker: this test binary with a worker's environment.
func (c *supervisor) start() *exec.Cmd {
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, c.log, c.log
	_, err := cmd.StdinPipe() // closed when this process ends, which ends the worker
	if err != nil || c.stopped || cmd.Start() != nil {
		return nil
	}
	c.workers[cmd] = true
	return cmd
}

// kill sends SIGKILL to all workers.
func (c *supervisor) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cmd := range c.workers {
		_ = cmd.Process.Kill()
	}
}
