package e2e

import (
	"strings"
	"testing"
)

// Security 9.1.5: a worker does not start on an allow-list that nobody applied,
// and says which command remedies that.
func TestWorkerRefusesAllowListThatNobodyApplied(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	for name, wider := range map[string]string{
		"a wider list":     "//depot/...,//secret/...",
		"a narrower one":   "//depot/a.go",
		"an entry refused": "//depot/*",
	} {
		in.log.Reset()
		in.env = append(in.env, "CRITICIZER_P4_ALLOWED_PATHS="+wider)
		worker := in.startWorker("--stages", "fetch")
		if err := worker.Wait(); err == nil {
			t.Errorf("%s: the worker ran", name)
		}
		if !strings.Contains(in.log.String(), "allowlist apply -reason") && !strings.Contains(in.log.String(), `"//depot/*"`) {
			t.Errorf("%s: the worker said\n%s", name, in.log)
		}
	}
}
