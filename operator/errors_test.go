package main

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/failure"
)

// The hint names what helps here and now.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typed []string
		hint  string
	}{
		{[]string{"statu", "4711"}, "hint: there is stats or status; "},
		{[]string{"reviews"}, "hint: there is review; "},
		{[]string{"foo"}, "hint: criticizer -h lists the commands"},
		{[]string{"nonsense"}, "hint: criticizer -h lists the commands"},
		{[]string{"version"}, "hint: criticizer -version prints it"},
		{[]string{"status"}, "hint: criticizer status -h shows how it is used"},
		{[]string{"deadletter"}, "hint: criticizer deadletter -h shows"},
		{[]string{"feedback", "abc", "wrong"}, "hint: copy the token"},
	} {
		if got := say(t, nil, tt.typed...); got.status != 2 || got.out != "" {
			t.Errorf("%q: status %d, %q", tt.typed, got.status, got.out)
		} else {
			contains(t, got.err, "criticizer: error: ", "\n"+tt.hint)
		}
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no namespace":        {advise(fmt.Errorf("ask: %w", serviceerror.NewNamespaceNotFound("x")), "check that it is up"), "correct temporal.namespace, or make it: temporal operator namespace create"},
		"a class":             {failure.Errorf(failure.NetworkUnreachable, "away"), "check DNS, routing and that the endpoint is up"},
		"somebody's Ctrl-C":   {interrupted(failure.Errorf(failure.NetworkUnreachable, "read jobs: context canceled")), "what it had begun is not undone"},
		"nothing is known":    {errors.New("oh"), ""},
		"advice for this one": {advise(failure.Errorf(failure.NetworkUnreachable, "away"), "plug it in"), "plug it in"},
	} {
		if got := hintOf(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWordsToChooseFrom(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := oneOf(words...); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
