package main

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
	healthTimeout = 10 * time.Second // more than the worker's own
	maxAnswer     = 1 << 10
)

// checkHealth asks the worker at address whether it reaches Temporal and the database
// (/readyz). It serves containers, whose image holds no HTTP client.
func checkHealth(ctx context.Context, address string) error {
	if address == "" {
		return errors.New("check health: worker.listen is empty: set an address, such as 127.0.0.1:9464")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("check health (worker.listen): %w: set an address, such as 127.0.0.1:9464", err)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("check health (worker.listen): %w", err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("check health (worker.listen): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		missing, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		return fmt.Errorf("check health: status %s: %s", response.Status, bytes.TrimSpace(missing))
	}
	return nil
}
