package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	healthTimeout = 10 * time.Second // more than readyTimeout
	maxAnswer     = 1 << 10
)

// CheckReady asks the worker that serves address, a field of the configuration, whether it
// is ready (/readyz). It serves containers, whose image holds no HTTP client.
func CheckReady(ctx context.Context, field, address string) error {
	if address == "" {
		return fmt.Errorf("check health: %s is empty: set an address, such as 127.0.0.1:9464", field)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("check health (%s): %w: set an address, such as 127.0.0.1:9464", field, err)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("check health (%s): %w", field, err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("check health (%s): %w", field, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		missing, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		return fmt.Errorf("check health: status %s: %s", response.Status, bytes.TrimSpace(missing))
	}
	return nil
}

// NotifyReady notifies systemd on its socket, if it started the process: the unit has
// Type=notify.
func NotifyReady(ctx context.Context, socket string) error {
	if socket == "" {
		return nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", socket)
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte("READY=1"))
	return errors.Join(err, conn.Close())
}
