package criticizer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A check without access to the database is reported as skipped, not as clean.
func TestVulnerabilityCheckReportsSkips(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says   string
		exit   int
		fails  bool
		prints string
	}{
		"there are none":              {"No vulnerabilities found.", 0, false, "No vulnerabilities found."},
		"there is one":                {"Vulnerability #1: GO-2026-0001", 3, true, "GO-2026-0001"},
		"the database is unreachable": {"govulncheck: fetching vulnerabilities: Get: no such host", 1, false, "SKIPPED: no check"},
		"the database is no database": {"creating client: unrecognized vulndb format", 1, false, "SKIPPED: no check"},
		"the code does not compile":   {"govulncheck: loading packages: There are errors", 1, true, "loading packages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := filepath.Join(t.TempDir(), "govulncheck")
			if err := os.WriteFile(tool, fmt.Appendf(nil, "#!/bin/sh\necho '%s' >&2\nexit %d\n", tt.says, tt.exit), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "sh", "tools/govulncheck.sh", tool, "./...").CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.prints) {
				t.Errorf("ended with %v, want a failure: %t; printed\n%s", err, tt.fails, out)
			}
			if skipped := strings.Contains(string(out), "SKIPPED"); skipped != strings.HasPrefix(tt.prints, "SKIPPED") {
				t.Errorf("printed\n%s", out)
			}
		})
	}
}
