package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const triggerFlag = "trigger"

// defaultTimeout is how long a submit may wait for the starter.
const defaultTimeout = 2 * time.Second

// runAsTrigger runs execute for a user who waits for the submit to return. The
// call returns after defaultTimeout even if a file system hangs. It reports no failure
// to Perforce, which would show an error about a change that is already submitted.
func runAsTrigger(stdout io.Writer, execute func() error) {
	done := make(chan error, 1)
	go func() { done <- execute() }()
	select {
	case err := <-done:
		if err != nil {
			reason := strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(strings.TrimSpace(err.Error()))
			fmt.Fprintf(stdout, "criticizer: no review was started: %s\n", reason)
		}
	case <-time.After(defaultTimeout):
		fmt.Fprintf(stdout, "criticizer: no review was started within %v\n", defaultTimeout)
	}
}
