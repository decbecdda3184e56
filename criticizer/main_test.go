package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// say runs criticizer with the environment variables of env.
func say(t *testing.T, env map[string]string, args ...string) answer {
	t.Helper()
	var out, errs strings.Builder
	c := &app{getenv: func(name string) string { return env[name] }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	status := c.run(t.Context(), args)
	return answer{out.String(), errs.String(), status}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	d := storetest.NewEmpty(t)
	env := map[string]string{"CRITICIZER_DATABASE_URL": d.URL.Reveal()}
	checkRefusal(t, "an empty database", say(t, env, "deadletter", "list"), 1, "criticizer migrate")
	for _, applied := range []bool{true, false} {
		got := say(t, env, "migrate")
		if got.status != 0 || got.err != "" || applied != (strings.Count(got.out, "name=") > 0) {
			t.Errorf("migrations applied, want %t: %+v", applied, got)
		}
	}
	if err := d.Open(t, store.RoleOperator).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMissingConfigurationIsReported(t *testing.T) {
	t.Parallel()
	checkRefusal(t, "no database", say(t, nil, "deadletter", "list"), 1, "CRITICIZER_DATABASE_URL")
	checkRefusal(t, "no file", say(t, nil, "--config", "missing.yaml", "deadletter", "list"), 1, "missing.yaml")
}

// Text from outside must not control the operator's terminal.
func TestControlCharactersAreNotPrinted(t *testing.T) {
	t.Parallel()
	if got := printable("a\x1b[2Jb\u202ec\nd"); got != "a[U+001B][2Jb[U+202E]c\nd" {
		t.Errorf("printed %q", got)
	}
}

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
		{[]string{"feedback", "accept", "abc", "--reason", "x"}, "hint: to list the tokens of findings with feedback: criticizer feedback list"},
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
		"a class":           {failure.Errorf(failure.NetworkUnreachable, "away"), "check DNS, routing and that the endpoint is up"},
		"an unknown error":  {errors.New("oh"), ""},
		"a hint of its own": {advise(failure.Errorf(failure.NetworkUnreachable, "away"), "plug it in"), "plug it in"},
	} {
		if got := operator.HintOf(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A full disk must not look like success: the file of a keyset would be empty.
func TestOutputThatIsNotWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	t.Cleanup(func() { _ = full.Close() })
	for _, command := range []string{"keyset evidence", "help status", "rules list", "rules list --json"} {
		var errs strings.Builder
		c := &app{getenv: func(string) string { return "" }, stdout: full, stderr: &errs}
		if status := c.run(t.Context(), strings.Fields(command)); status != 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%s: status %d, %s", command, status, errs.String())
		}
	}
}

// After Ctrl-C the hint does not blame the network.
func TestInterruptedCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs strings.Builder
	env := map[string]string{"CRITICIZER_DATABASE_URL": "postgres://x@127.0.0.1:1/x", "CRITICIZER_CONFIG": os.DevNull}
	c := &app{getenv: func(name string) string { return env[name] }, stdout: io.Discard, stderr: &errs}
	if status := c.run(ctx, []string{"review", "list"}); status != 1 || !strings.Contains(errs.String(), "error: interrupted: ") || !strings.Contains(errs.String(), "hint: changes made before") {
		t.Errorf("status %d, %s", status, errs.String())
	}
}
