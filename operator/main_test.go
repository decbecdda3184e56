package main

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// say runs criticizer with the environment variables of env.
func say(t *testing.T, env map[string]string, args ...string) answer {
	t.Helper()
	var out, errs strings.Builder
	c := &console{getenv: func(name string) string { return env[name] }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
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
		if got.status != 0 || got.err != "" || applied != (strings.Count(got.out, "version=") > 0) {
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
	if got := printable("a\x1b[2Jb\u202ec\nd"); got != "a\ufffd[2Jb\ufffdc\nd" {
		t.Errorf("printed %q", got)
	}
}
