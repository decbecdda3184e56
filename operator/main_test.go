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
	if got := say(t, env, "deadletter", "list"); got.status != 1 || !strings.Contains(got.err, "criticizer migrate") {
		t.Errorf("an empty database: status %d, %q", got.status, got.err)
	}
	got := say(t, env, "migrate")
	if got.status != 0 || !strings.Contains(got.out, "version=1 ") || got.err != "" {
		t.Errorf("first: status %d, %q, %q", got.status, got.out, got.err)
	}
	if got := say(t, env, "migrate"); got.status != 0 || got.out != "nothing to do: the schema has this build's version\n" {
		t.Errorf("second: status %d, %q", got.status, got.out)
	}
	if err := d.Open(t, store.RoleOperator).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMissingConfigurationIsReported(t *testing.T) {
	t.Parallel()
	got := say(t, nil, "deadletter", "list")
	if got.status != 1 || !strings.Contains(got.err, "CRITICIZER_DATABASE_URL: is not set") || !strings.Contains(got.err, "\nhint: ") {
		t.Errorf("status %d, %q", got.status, got.err)
	}
	if got := say(t, nil, "--config", "missing.yaml", "deadletter", "list"); got.status != 1 || !strings.Contains(got.err, "missing.yaml does not exist") {
		t.Errorf("status %d, %q", got.status, got.err)
	}
}

// Text from outside must not control the operator's terminal.
func TestControlCharactersAreNotPrinted(t *testing.T) {
	t.Parallel()
	if got := printable("a\x1b[2Jb\u202ec\nd"); got != "a\ufffd[2Jb\ufffdc\nd" {
		t.Errorf("printed %q", got)
	}
}
