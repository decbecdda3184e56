package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// serverVariable has the version of the server under test if make test-server runs the tests:
// the server supports fairness and pauses.
const serverVariable = "CRITICIZER_TEST_TEMPORAL_VERSION"

// A temporalServer is a development server on an address of its own. Its state is
// in a file, so that it survives a restart.
type temporalServer struct {
	Address string
	command string
	args    []string
	log     string
	process *exec.Cmd
}

// startTemporal starts a server with dynamic configuration values, each key=value,
// and stops it when the test ends.
func startTemporal(tb testing.TB, settings ...string) *temporalServer {
	tb.Helper()
	dir, address := tb.TempDir(), freeAddress(tb)
	_, port, _ := net.SplitHostPort(address)
	s := &temporalServer{Address: address, command: temporalCommand(tb), log: filepath.Join(dir, "temporal.log")}
	s.args = []string{"server", "start-dev", "--ip", "127.0.0.1", "--port", port, "--headless", "--log-level", "error", "--db-filename", filepath.Join(dir, "temporal.db")}
	for _, setting := range append(settings, "system.forceSearchAttributesCacheRefreshOnRead=true") {
		s.args = append(s.args, "--dynamic-config-value", setting)
	}
	s.start(tb)
	tb.Cleanup(s.kill)
	return s
}

// start returns when the server accepts connections.
func (s *temporalServer) start(tb testing.TB) {
	tb.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Error(err)
		return
	}
	defer func() { _ = log.Close() }()
	s.process = exec.Command(s.command, s.args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		tb.Error(err)
		return
	}
	listens := poll(time.Minute, 100*time.Millisecond, func() bool {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if !listens {
		output, _ := os.ReadFile(s.log)
		tb.Errorf("Temporal does not start:\n%s", output)
	}
}

func (s *temporalServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Restart kills the server and starts it again. It may be called from any
// goroutine of the test.
func (s *temporalServer) Restart(tb testing.TB) {
	tb.Helper()
	s.kill()
	s.start(tb)
}
