package e2e

import (
	"strings"
	"testing"
)

// A worker does not start on an allow list that no administrator applied, and names
// the command that applies it (security 9.1.5: changes of the list are reviewed).
func TestWorkerRefusesAllowListThatNobodyApplied(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	for name, list := range map[string]string{
		"a wider list":     "//depot/...,//secret/...",
		"a narrower list":  "//depot/a.go",
		"an invalid entry": "//depot/*",
	} {
		in.log.Reset()
		in.env = append(in.env, "CRITICIZER_P4_ALLOWED_PATHS="+list)
		if err := in.startWorker("--stages", "fetch").Wait(); err == nil {
			t.Errorf("%s: the worker ran", name)
		}
		if !strings.Contains(in.log.String(), "allowlist apply") && !strings.Contains(in.log.String(), `"//depot/*"`) {
			t.Errorf("%s: the worker logged\n%s", name, in.log)
		}
	}
}
