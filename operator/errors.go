package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/criticizer/criticizer/failure"
)

// A usageError is one that a look at the usage would have prevented.
type usageError struct{ error }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// An advised error comes with what to do about this very one.
type advised struct {
	error
	hint string
}

func (a advised) Unwrap() error { return a.error }

func advise(err error, format string, args ...any) error {
	return advised{err, fmt.Sprintf(format, args...)}
}

// errReported ends a command whose errors were reported item by item.
var errReported = errors.New("some items failed")

// statusOf reports err, unless that has been done, and returns the exit status.
func statusOf(stderr io.Writer, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	report(stderr, err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return 2
	}
	return 1
}

// report prints err and what to do about it.
func report(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "criticizer: error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
}

// hintOf says what a person can do about err: this one, else one of its class.
func hintOf(err error) string {
	if a, ok := errors.AsType[advised](err); ok {
		return a.hint
	}
	if _, wrong := errors.AsType[usageError](err); wrong {
		return "criticizer -h lists the commands, criticizer COMMAND -h the flags of one"
	}
	if c := failure.ClassOf(err); c != failure.Unknown {
		return c.Describe().Hint
	}
	return ""
}
