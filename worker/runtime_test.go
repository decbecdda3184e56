package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
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

// The SDK's record of a failed attempt is dropped if the interceptor has logged it,
// and is a warning otherwise. Other records keep their level.
func TestSDKLogsFailedAttemptsOnce(t *testing.T) {
	t.Parallel()
	verdict := temporal.NewApplicationErrorWithOptions("away", "AUTH_DENIED", temporal.ApplicationErrorOptions{NonRetryable: true})
	for name, tt := range map[string]struct {
		message string
		err     error
		of      string
		want    string // level; empty if nothing is logged
	}{
		"an attempt that failed":          {"Activity error.", verdict, "Fetch", ""},
		"one that was canceled":           {"Activity error.", temporal.NewCanceledError(), "Fetch", ""},
		"an attempt that could not begin": {"Activity error.", errors.New("unable to decode the input"), "Fetch", "WARN"},
		"a panic":                         {"Activity panic.", verdict, "Fetch", "ERROR"},
		"no error":                        {"Activity error.", nil, "Fetch", "WARN"},
	} {
		var out bytes.Buffer
		lg := sdkLogger{log.NewStructuredLogger(slog.New(slog.NewTextHandler(&out, nil)))}
		log.With(lg, "Namespace", "n").Error(tt.message, "ActivityType", tt.of, "Attempt", 1, "Error", tt.err)
		got := out.String()
		if tt.want == "" && got != "" || tt.want != "" && !(strings.Contains(got, "level="+tt.want) && strings.Contains(got, "Namespace=n")) {
			t.Errorf("%s: logged %q, want level %q", name, got, tt.want)
		}
	}
}
