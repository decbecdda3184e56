package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// systemd learns that the worker is ready; without systemd nothing is sent.
func TestReadinessIsReportedToSystemd(t *testing.T) {
	t.Parallel()
	if err := reportReady(t.Context(), ""); err != nil {
		t.Errorf("without a socket: %v", err)
	}
	socket := filepath.Join(t.TempDir(), "notify")
	if err := reportReady(t.Context(), socket); err == nil {
		t.Error("a socket that does not exist is no error")
	}
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = systemd.Close() }()
	if err := reportReady(t.Context(), socket); err != nil {
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
