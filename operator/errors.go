package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/failure"
)

// A usageError is one that a look at the usage would have prevented.
type usageError struct{ error }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// notOne says that what came behind a command is none of its actions.
func notOne(command, got string, actions ...string) error {
	if got == "" {
		return badUsage("%s wants one of %s", command, strings.Join(actions, ", "))
	}
	return badUsage("%s wants one of %s: got %q", command, strings.Join(actions, ", "), got)
}

// oneOf lists what there is to choose from: a, b or c.
func oneOf[word ~string](words ...word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	return strings.Join(list, "")
}

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

// adviseUsage has the hint of wrong usage name the help of the command.
func adviseUsage(err error, command string) error {
	_, wrong := errors.AsType[usageError](err)
	_, has := errors.AsType[advised](err)
	if !wrong || has {
		return err
	}
	return advise(err, "criticizer %s -h shows how it is used", command)
}

// unknownCommand suggests what may have been meant.
func unknownCommand(typed string) error {
	err := badUsage("unknown command %q", typed)
	if typed == "version" {
		return advise(err, "criticizer -version prints it")
	}
	least, near := min(2, (len(typed)-1)/2), []string(nil) // of a short word, less may be wrong
	for _, name := range slices.Sorted(maps.Keys(commands())) {
		switch n := apart(typed, name); {
		case n < least:
			least, near = n, []string{name}
		case n == least:
			near = append(near, name)
		}
	}
	if near == nil {
		return err
	}
	return advise(err, "there is %s; criticizer -h lists the commands", oneOf(near...))
}

// apart is how many letters have to be added, left out or changed to make a of b.
func apart(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// hintOf says what a person can do about err: this one, else one of its class.
func hintOf(err error) string {
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		return "correct temporal.namespace, or make it: temporal operator namespace create"
	}
	if a, ok := errors.AsType[advised](err); ok {
		return a.hint
	}
	if _, wrong := errors.AsType[usageError](err); wrong {
		return "criticizer -h lists the commands, criticizer COMMAND -h the flags of one"
	}
	if c := failure.ClassOf(err); c != failure.Unknown {
		hint, _, _ := strings.Cut(c.Describe().Hint, ", then replay") // that is for dead letters
		return hint
	}
	return ""
}
