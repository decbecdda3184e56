package main

import (
	"strings"
	"testing"
	"time"
)

// A check would send a ticket or a password to a host that no worker may connect to.
func TestDoctorSendsNothingInClear(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "temporal.invalid:7233", "CRITICIZER_P4_PORT": "perforce.invalid:1666"}
	c := &console{getenv: func(name string) string { return vars[name] }, configPath: "/dev/null"}
	checks := c.checks(stageRoles, false)
	if len(checks) != 1 || checks[0].name != "config" {
		t.Fatalf("%d checks run, want only that of the configuration", len(checks))
	}
	var details strings.Builder
	for _, r := range runChecks(t.Context(), time.Minute, checks) {
		details.WriteString(r.Detail + "\n")
	}
	for _, field := range []string{"temporal.address", "p4.port"} {
		if !strings.Contains(details.String(), field) {
			t.Errorf("%s is not reported:\n%s", field, details.String())
		}
	}
	vars["CRITICIZER_ALLOW_CLEARTEXT"] = "temporal,p4"
	if got := len(c.checks(stageRoles, false)); got < 5 {
		t.Errorf("%d checks run with what is allowed", got)
	}
}
