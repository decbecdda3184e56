package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli"
)

// execute runs a worker that gets no further than its command line.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	err = cli.Execute(t.Context(), newCommand(func(string) string { return "" }), args, &out, io.Discard)
	return out.String(), err
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "--version"} {
		if out, err := execute(t, flag); out == "" || err != nil {
			t.Errorf("%s: %q, %v", flag, out, err)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--roles", "nonsense"}, {"--nonsense"}, {"serve"}} {
		_, err := execute(t, args...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%v: error is %v, want a usage error", args, err)
		}
	}
}
