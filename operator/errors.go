package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
)

func badUsage(format string, args ...any) error {
	return cli.UsageError{Err: fmt.Errorf(format, args...)}
}

// An advised error carries a hint for this very error.
type advised struct {
	error
	hint string
}

func (a advised) Unwrap() error { return a.error }

func advise(err error, format string, args ...any) error {
	return advised{err, fmt.Sprintf(format, args...)}
}

// errReported ends a command that has reported its errors item by item.
var errReported = errors.New("some items failed")

// exitStatus reports err, unless that has been done, and returns the exit status.
func (c *console) exitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	report(c.stderr, err)
	if _, wrong := errors.AsType[cli.UsageError](err); wrong {
		return 2
	}
	return 1
}

// report prints err and its hint.
func report(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "criticizer: error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
}

// hintOf returns the hint of err itself, or else that of its class.
func hintOf(err error) string {
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		return "correct temporal.namespace, or create it: temporal operator namespace create"
	}
	if a, ok := errors.AsType[advised](err); ok {
		return a.hint
	}
	if usage, ok := errors.AsType[cli.UsageError](err); ok {
		return usage.Hint
	}
	if class := failure.ClassOf(err); class != failure.Unknown {
		hint, _, _ := strings.Cut(class.Describe().Hint, ", then replay") // which is for dead letters only
		return hint
	}
	return ""
}
