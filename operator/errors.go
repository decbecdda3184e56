package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/criticizer/criticizer/failure"
)

// fail reports err and what to do about it, and returns the exit status.
func fail(stderr io.Writer, err error, hint string) int {
	if errors.Is(err, flag.ErrHelp) {
		return 2
	}
	fmt.Fprintf(stderr, "criticizer: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return 1
}

// hintOf says what a person can do about err.
func hintOf(err error) string {
	if c := failure.ClassOf(err); c != failure.Unknown {
		return c.Describe().Hint
	}
	return ""
}
