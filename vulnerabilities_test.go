package criticizer_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A check without access to the database is reported as skipped, not as clean; if CI could
// have had access, it fails.
func TestVulnerabilityCheckReportsSkips(t *testing.T) {
	t.Parallel()
	const unreachable = "govulncheck: fetching vulnerabilities: Get: no such host"
	database := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(database.Close)
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	mirror := t.TempDir()
	for name, tt := range map[string]struct {
		says   string
		exit   int
		ci     string
		db     string
		fails  bool
		prints string
	}{
		"there are none":                       {"No vulnerabilities found.", 0, "1", "", false, "No vulnerabilities found."},
		"there is one":                         {"Vulnerability #1: GO-2026-0001", 3, "", "", true, "GO-2026-0001"},
		"the database is unreachable":          {unreachable, 1, "", database.URL, false, "SKIPPED: no check"},
		"the database is no database":          {"creating client: unrecognized vulndb format", 1, "", mirror, false, "SKIPPED: no check"},
		"the code does not compile":            {"govulncheck: loading packages: There are errors", 1, "", "", true, "loading packages"},
		"unreachable in CI":                    {unreachable, 1, "1", "http://127.0.0.1:1", false, "SKIPPED: no check"},
		"refused in CI":                        {unreachable, 1, "1", refusing.URL, false, "SKIPPED: no check"},
		"a missing mirror in CI":               {unreachable, 1, "1", "file://" + mirror + "/missing", false, "SKIPPED: no check"},
		"not asked in CI although it is there": {unreachable, 1, "1", database.URL, true, "FAILED: no check"},
		"a mirror in CI that is no database":   {"creating client: unrecognized vulndb format", 1, "1", "file://" + mirror, true, "FAILED: no check"},
		"CI does not excuse a vulnerability":   {"Vulnerability #1: GO-2026-0001", 3, "1", "http://127.0.0.1:1", true, "GO-2026-0001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := exec.CommandContext(t.Context(), "sh", "tools/govulncheck.sh", "tools/testdata/govulncheck", "./...")
			check.Env = append(os.Environ(), "CI="+tt.ci, "GOVULNDB="+tt.db, "SAYS="+tt.says, "EXIT="+strconv.Itoa(tt.exit))
			out, err := check.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.prints) {
				t.Errorf("ended with %v, want a failure: %t; printed\n%s", err, tt.fails, out)
			}
			if skipped := strings.Contains(string(out), "SKIPPED"); skipped != strings.HasPrefix(tt.prints, "SKIPPED") {
				t.Errorf("printed\n%s", out)
			}
		})
	}
}
