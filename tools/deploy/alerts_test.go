package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAlertRules checks the rules with Prometheus's own tool, and evaluates them on
// some series.
func TestAlertRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed (Debian package prometheus)")
	}
	dir := t.TempDir()
	for name, of := range map[string]string{
		"alerts.yml": docs + "/alerts.yml", "test.yml": "testdata/alerts_test.yml", "rewrite_test.yml": "testdata/alerts_rewrite_test.yml",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), read(t, of), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "test.yml", "rewrite_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
