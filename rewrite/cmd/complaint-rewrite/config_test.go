package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config/reference"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// read returns the settings of a file, with the variables of env, without checks.
func read(t *testing.T, file string, env map[string]string) *settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "complaint-rewrite.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	c, err := readSettings(path, func(name string) string { return env[name] }, "none")
	testkit.NoError(t, err)
	return c
}

// complete has what a worker needs.
var complete = map[string]string{
	"COMPLAINT_REWRITE_DATABASE_URL": "postgres://127.0.0.1/x", "COMPLAINT_REWRITE_KEYSET": "{}",
	"COMPLAINT_REWRITE_REDACTION_KEY": "a key of this test, long enough", "COMPLAINT_REWRITE_ROUTE_MODEL": "m",
}

// A worker needs all settings. A key must not cross a network in clear.
func TestSettingsOfAWorkerAreChecked(t *testing.T) {
	t.Parallel()
	key := secret.New("key")
	for name, tt := range map[string]struct {
		change func(*settings)
		want   []string
	}{
		"complete":               {func(*settings) {}, nil},
		"with a key":             {func(c *settings) { c.OpenAI.APIKey = key }, nil},
		"a server on this host":  {func(c *settings) { c.Other.BaseURL, c.Other.APIKey = "http://127.0.0.1:8000/v1", key }, nil},
		"a server without a key": {func(c *settings) { c.Other.BaseURL = "https://models.example/v1" }, nil},
		"a key in clear":         {func(c *settings) { c.Other.BaseURL, c.Other.APIKey = "http://models.example/v1", key }, []string{"other.base_url"}},
		"a server in clear":      {func(c *settings) { c.Other.BaseURL = "http://models.example/v1" }, []string{"other.base_url"}},
		"a server that may be": {func(c *settings) {
			c.Other.BaseURL, c.AllowClearText = "http://models.example/v1", []string{"other"}
		}, nil},
		"Temporal in clear":         {func(c *settings) { c.Temporal.Address = "temporal:7233" }, []string{"temporal.address"}},
		"a URL with a password":     {func(c *settings) { c.Google.BaseURL = "https://ann:x@example.com" }, []string{"google.base_url"}},
		"limits of zero":            {func(c *settings) { c.Timeout, c.MaxAnswerTokens = 0, 0 }, []string{"timeout", "max_answer_tokens"}},
		"an unknown profile":        {func(c *settings) { c.Run.Profile = "test" }, []string{"run.profile"}},
		"a negative number of jobs": {func(c *settings) { c.Run.MaxJobsPerRun = -1 }, []string{"run.max_jobs_per_run"}},
		"no room for batches":       {func(c *settings) { c.Batch.MaxEnqueuedTokens = 0 }, []string{"batch.max_enqueued_tokens"}},
		"no model":                  {func(c *settings) { c.Route.Model = "" }, []string{"route.model"}},
	} {
		c := read(t, "", complete)
		tt.change(c)
		err := c.check(nil)
		var got []string
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if field, _, _ := strings.Cut(line, ":"); field != "check configuration" {
					got = append(got, field)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want problems with %v", name, err, tt.want)
		}
	}
}

// Each party needs its own secrets only.
func TestSecretsOfAParty(t *testing.T) {
	t.Parallel()
	b := backend{nil, map[string]string{"COMPLAINT_REWRITE_CONFIG": os.DevNull, "COMPLAINT_REWRITE_TEMPORAL_ADDRESS": "127.0.0.1:1"}}
	const database, keyset = "COMPLAINT_REWRITE_DATABASE_URL", "COMPLAINT_REWRITE_KEYSET"
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"jobs", []string{database}},
		{"migrate", []string{database}},
		{"seal", []string{keyset}},
		{"result 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10", []string{database, keyset}},
		{"run", nil},
		{"worker", []string{database, keyset, "COMPLAINT_REWRITE_REDACTION_KEY", "route.model"}},
	} {
		_, err := b.run(t, strings.Fields(tt.args)...)
		var got []string
		for line := range strings.Lines(err.Error()) {
			if name, missing := strings.CutSuffix(strings.SplitN(line, ": set it", 2)[0], ": is not set"); missing {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.args, err, tt.want)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the lists of rewrite/docs/configuration.md")

func TestDocsListEveryField(t *testing.T) {
	t.Parallel()
	reference.Compare(t, program, new(settings), "../../..", program.Page, *update)
}
