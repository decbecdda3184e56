package main

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestHintsOfWrongUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typed []string
		hint  string
	}{
		{[]string{"statu", "4711"}, "hint: did you mean stats or status? "},
		{[]string{"reviews", "--limit", "5"}, "hint: did you mean preview or review? "},
		{[]string{"nonsense"}, "hint: see criticizer --help\n"},
		{[]string{"nonsense", "--help"}, "hint: see criticizer --help\n"},
		{[]string{"help", "nonsense"}, "hint: "},
		{[]string{"deadletter", "lst", "--state", "open"}, "hint: did you mean list? "},
		{[]string{"deadletter", "lst", "--help"}, "hint: did you mean list? "},
		{[]string{"status"}, "hint: see criticizer status --help\n"},
		{[]string{"deadletter"}, "hint: see criticizer deadletter --help\n"},
		{[]string{"feedback", "abc", "wrong"}, "hint: copy the token"},
		{[]string{"status", "--nonsense", "4711"}, "hint: see criticizer status --help\n"},
		{[]string{"status", "4711", "-o", "xml"}, "hint: see criticizer status --help\n"},
		{[]string{"keyset", "create", "--json", "x"}, "hint: see criticizer keyset create --help\n"},
	} {
		got := say(t, nil, tt.typed...)
		if got.status != 2 || got.out != "" {
			t.Errorf("%q: status %d, %q", tt.typed, got.status, got.out)
		}
		contains(t, got.err, "criticizer: error: ", "\n"+tt.hint)
	}
}

func TestHintsOfFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no namespace":      {advise(fmt.Errorf("ask: %w", serviceerror.NewNamespaceNotFound("x")), "check that it is up"), "correct temporal.namespace, or create it: temporal operator namespace create"},
		"a class":           {failure.Errorf(failure.NetworkUnreachable, "away"), "check DNS, routing and that the endpoint is up"},
		"Ctrl-C":            {interrupted(failure.Errorf(failure.NetworkUnreachable, "read jobs: context canceled")), "changes made before the interrupt are kept"},
		"an unknown error":  {errors.New("oh"), ""},
		"a hint of its own": {advise(failure.Errorf(failure.NetworkUnreachable, "away"), "plug it in"), "plug it in"},
	} {
		if got := hintOf(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
