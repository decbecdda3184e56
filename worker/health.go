package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const healthTimeout = 5 * time.Second

// checkHealth requests /healthz of the worker at address. It serves containers,
// whose image holds no HTTP client.
func checkHealth(ctx context.Context, address string) error {
	if address == "" {
		return errors.New("check health: worker.listen is empty: set an address, such as 127.0.0.1:9464")
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("check health (worker.listen): %w", err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("check health (worker.listen): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("check health: status %s", response.Status)
	}
	return nil
}
