package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// An invocation is one line of P4SIM_LOG. It holds the environment with its
// values, secrets included: the log is for tests.
type invocation struct {
	Argv    []string `json:"argv"`
	Env     []string `json:"env"`
	Exit    int      `json:"exit"`
	Millis  int64    `json:"ms"`
	Workdir string   `json:"dir"`
}

func logInvocation(s settings, argv, environ []string, code int, took time.Duration) error {
	name := s["P4SIM_LOG"]
	if name == "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	line, err := json.Marshal(invocation{argv, environ, code, took.Milliseconds(), dir})
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	return nil
}
