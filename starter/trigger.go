package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const triggerFlag = "trigger"

// isTrigger looks for the flag before the arguments are parsed: a trigger must
// not fail on any of them.
func isTrigger(args []string) bool {
	return slices.Contains(args, "--"+triggerFlag) || slices.Contains(args, "--"+triggerFlag+"=true")
}

// runAsTrigger runs execute for a user who waits for the submit to return. The
// call returns after 2 s even if a file system hangs. It reports no failure to
// Perforce, which would show an error about a change that is already submitted.
func runAsTrigger(stdout io.Writer, execute func() error) {
	done := make(chan error, 1)
	go func() { done <- execute() }()
	select {
	case err := <-done:
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(stdout, "criticizer: no review was started: %s\n", first)
		}
	case <-time.After(defaultTimeout):
		fmt.Fprintf(stdout, "criticizer: no review was started within %v\n", defaultTimeout)
	}
}
