package telemetry

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemd learns that the worker is ready; without systemd nothing is sent.
func TestReadinessIsReportedToSystemd(t *testing.T) {
	t.Parallel()
	if err := NotifyReady(t.Context(), ""); err != nil {
		t.Errorf("without a socket: %v", err)
	}
	socket := filepath.Join(t.TempDir(), "notify")
	if err := NotifyReady(t.Context(), socket); err == nil {
		t.Error("a socket that does not exist is no error")
	}
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = systemd.Close() }()
	if err := NotifyReady(t.Context(), socket); err != nil {
		t.Fatal(err)
	}
	if err := systemd.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 100)
	n, err := systemd.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("systemd read %q, %v", message[:n], err)
	}
}

func TestCheckHealth(t *testing.T) {
	t.Parallel()
	serve := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("requested %s", r.URL.Path)
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	alive := serve(http.StatusOK)
	_, port, _ := strings.Cut(alive, ":")
	for name, tt := range map[string]struct{ address, want string }{
		"alive":                  {alive, ""},
		"alive on all addresses": {":" + port, ""},
		"dead":                   {"127.0.0.1:1", "connection refused"},
		"unhealthy":              {serve(http.StatusServiceUnavailable), "503"},
		"no address":             {"", "worker.listen is empty"},
		"not an address":         {"9464", "9464"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CheckReady(t.Context(), "worker.listen", tt.address)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
