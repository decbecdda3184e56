package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/store"
)

// A clock is wrong only if the difference exceeds the error of the measurement.
func TestClocksAreCompared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		skew, slack time.Duration
		wrong       bool
	}{
		{time.Second, 0, false}, {time.Minute, time.Minute, false}, {time.Hour, time.Minute, true}, {-time.Hour, time.Minute, true},
	} {
		if err := checkClock(tt.skew, tt.slack); (err != nil) != tt.wrong {
			t.Errorf("%s, measured within %s: %v", tt.skew, tt.slack, err)
		}
	}
}

func TestOldPostgres(t *testing.T) {
	t.Parallel()
	if err := checkVersion(store.OldestPostgres); err != nil {
		t.Error(err)
	}
	if err := checkVersion(store.OldestPostgres - 1); err == nil || err.Error() != "version 14 is too old" || operator.HintOf(err) != "upgrade it to 15 or newer" {
		t.Errorf("%v", err)
	}
}

// The one mistake comes first, and what it makes impossible is not checked.
func TestDoctorNamesTheMistakeFirst(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "criticizer.yaml")
	c := &app{getenv: func(name string) string { return map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}[name] }}
	checks := c.checks(settings.WorkerRoles, false)
	for _, ch := range checks {
		if slices.Contains([]string{"postgres", "p4", "allowlist", "model", "mail"}, ch.Name) {
			t.Errorf("%s is checked without its configuration", ch.Name)
		}
	}
	i := installation{cfg: &settings.Config{}, roles: settings.WorkerRoles, file: missing}
	var found operator.Findings
	testkit.NoError(t, i.configuration(t.Context(), &found))
	if len(found) < 10 || !strings.Contains(found[0].Detail, missing+" does not exist") || !strings.Contains(found[1].Detail, "no secret is set") {
		t.Errorf("found %+v", found)
	}
	if last := found[len(found)-1]; last.Fix == "" || strings.Contains(last.Detail, last.Fix) {
		t.Errorf("problem and fix are not apart: %+v", last)
	}
}

// A check would send a ticket or a password to a host that no worker may connect to.
func TestDoctorSendsNothingInClear(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "temporal.invalid:7233", "CRITICIZER_P4_PORT": "perforce.invalid:1666"}
	c := &app{getenv: func(name string) string { return vars[name] }, configPath: "/dev/null"}
	checks := c.checks(settings.WorkerRoles, false)
	if len(checks) != 1 || checks[0].Name != "config" {
		t.Fatalf("%d checks run, want only that of the configuration", len(checks))
	}
	var details strings.Builder
	for _, r := range operator.RunChecks(t.Context(), time.Minute, checks) {
		details.WriteString(r.Detail + "\n")
	}
	for _, field := range []string{"temporal.address", "p4.port"} {
		if !strings.Contains(details.String(), field) {
			t.Errorf("%s is not reported:\n%s", field, details.String())
		}
	}
	vars["CRITICIZER_ALLOW_CLEARTEXT"] = "temporal,p4"
	if got := len(c.checks(settings.WorkerRoles, false)); got < 4 {
		t.Errorf("%d checks run with what is allowed", got)
	}
}

// A misspelled fallback would otherwise show only when llm.model fails.
func TestDoctorTriesEachModel(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(`"misspelled"`)) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error": {"code": "model_not_found"}}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	vars := map[string]string{
		"CRITICIZER_LLM_BASE_URL": server.URL + "/v1", "CRITICIZER_LLM_MODEL": "first", "CRITICIZER_LLM_FALLBACK_MODELS": "misspelled,third",
		"CRITICIZER_REDACTION_KEY": "a key for tests, not a secret",
	}
	c := &app{getenv: func(name string) string { return vars[name] }, configPath: "/dev/null"}
	found := operator.RunChecks(t.Context(), time.Minute, c.checks(settings.WorkerRoles, true))
	for model, want := range map[string]operator.CheckStatus{"first": operator.StatusOK, "misspelled": operator.StatusFail, "third": operator.StatusOK} {
		if !slices.ContainsFunc(found, func(r operator.CheckResult) bool {
			return r.Status == want && strings.HasPrefix(r.Detail, "model "+model+": ")
		}) {
			t.Errorf("model %s is not reported as %s: %+v", model, want, found)
		}
	}
}
