package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/failure"
)

// A usageError is a mistake on the command line. The exit status is 2.
type usageError struct{ error }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

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

// unknownCommand reports the first operand of a group, which names no command.
func unknownCommand(of *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badUsage("%s wants a command", of.CommandPath())
	}
	err := badUsage("unknown command %q for %s", args[0], of.CommandPath())
	if near := of.SuggestionsFor(args[0]); len(near) > 0 {
		return advise(err, "did you mean %s? %s --help lists the commands", alternatives(near...), of.CommandPath())
	}
	return err
}

// exitStatus reports err, unless that has been done, and returns the exit status.
func (c *console) exitStatus(cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errReported) {
		return 1
	}
	_, wrong := errors.AsType[usageError](err)
	if _, has := errors.AsType[advised](err); wrong && !has {
		err = advise(err, "see %s --help", cmd.CommandPath())
	}
	report(c.stderr, err)
	if wrong {
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
	if class := failure.ClassOf(err); class != failure.Unknown {
		hint, _, _ := strings.Cut(class.Describe().Hint, ", then replay") // which is for dead letters only
		return hint
	}
	return ""
}
