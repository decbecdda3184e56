package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthy asks the worker that listens at address whether it lives: for a
// container, which holds no other program that could.
func healthy(ctx context.Context, address string) error {
	if address == "" {
		return fmt.Errorf("ask for the worker's health: worker.listen is empty: give it an address, such as 127.0.0.1:9464")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("ask for the worker's health: worker.listen: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("ask for the worker's health: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the worker's health: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for the worker's health: it answered %s", answer.Status)
	}
	return nil
}
