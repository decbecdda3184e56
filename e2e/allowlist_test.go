package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A worker does not start on an allow list that no administrator applied, and names
// the command that applies it (security 9.1.5: changes of the list are reviewed). Nor does it
// start if the address of its HTTP server is in use.
func TestWorkerRefusesAllowListThatNobodyApplied(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	applied := in.env
	for name, list := range map[string]string{
		"a wider list":     "//depot/...,//secret/...",
		"a narrower list":  "//depot/a.go",
		"an invalid entry": "//depot/*",
	} {
		in.log.Reset()
		in.env = append(slices.Clip(applied), "CRITICIZER_P4_ALLOWED_PATHS="+list)
		if err := in.startWorker("--roles", "fetch").Wait(); err == nil {
			t.Errorf("%s: the worker ran", name)
		}
		if !strings.Contains(in.log.String(), "allowlist apply") && !strings.Contains(in.log.String(), `"//depot/*"`) {
			t.Errorf("%s: the worker logged\n%s", name, in.log)
		}
	}
	in.env = applied
	in.env = append(in.env, "CRITICIZER_WORKER_LISTEN="+strings.TrimPrefix(in.inbox.URL(), "http://"))
	if err := in.startWorker().Wait(); err == nil || !strings.Contains(in.log.String(), "worker.listen") {
		t.Errorf("worker ended with %v and %q, want the field that names the address", err, in.log)
	}
}
