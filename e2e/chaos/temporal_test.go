package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// commandVariable names the environment variable with the temporal command;
// make chaos sets it.
const temporalVariable = "CRITICIZER_TEST_TEMPORAL_COMMAND"

// A temporalServer keeps what it is told in a file.
type temporalServer struct {
	command, file string
	port          int
	server        *exec.Cmd
}

// startTemporal starts a server and stops it when the test ends.
func startTemporal(t *testing.T, file string) *temporalServer {
	t.Helper()
	command := os.Getenv(temporalVariable)
	if command == "" {
		t.Fatalf("%s is not set: run this with make chaos", temporalVariable)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s := &temporalServer{command: command, file: file, port: port}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *temporalServer) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// start returns when the server takes connections.
func (s *temporalServer) start(t *testing.T) {
	t.Helper()
	s.server = exec.Command(s.command, "server", "start-dev", "--ip", "127.0.0.1", "--port", fmt.Sprint(s.port), "--headless",
		"--db-filename", s.file, "--log-level", "error",
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="50ms"`,
		"--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=true")
	log, err := os.OpenFile(s.file+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = log.Close() }()
	s.server.Stdout, s.server.Stderr = log, log
	if err := s.server.Start(); err != nil {
		t.Error(err)
		return
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.address())
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			progress, _ := os.ReadFile(log.Name())
			t.Errorf("Temporal does not start:\n%s", progress)
			return
		}
	}
}

func (s *temporalServer) kill() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
}

func (s *temporalServer) restart(t *testing.T) {
	t.Helper()
	s.kill()
	s.start(t)
}
