package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli"
)

// execute runs a command that needs no service.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	err = run(t.Context(), args, func(string) string { return "" }, &out, io.Discard)
	return out.String(), err
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"", "nonsense", "change-commit", "change-commit 1 2", "change-commit --nonsense 1", "change-commit --timeout soon 1", "drain 1",
		"rewrite", "rewrite nonsense", "rewrite enqueue", "rewrite result", "change-commit 0", "change-commit --review-version 0 1", "shelve-commit x",
	} {
		_, err := execute(t, append([]string{"--config", os.DevNull}, strings.Fields(args)...)...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%q: error is %v, want a usage error", args, err)
		}
	}
}

// A trigger must not fail, and prints at most one line.
func TestTriggerNeverFails(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "nonsense", "change-commit", "--nonsense", "change-commit --timeout=x 1", "--config missing.yaml change-commit 1"} {
		out, err := execute(t, append([]string{"--trigger"}, strings.Fields(args)...)...)
		if err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}
