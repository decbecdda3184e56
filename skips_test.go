package criticizer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// With CI set, an unlisted skip and a run without tests fail.
func TestUnlistedSkipsFailInCI(t *testing.T) {
	t.Parallel()
	const passed = `{"Action":"pass","Package":"github.com/criticizer/criticizer/p4","Test":"TestX"}` + "\n"
	const listed = `{"Action":"skip","Package":"github.com/criticizer/criticizer/e2e/rewritechaos","Test":"TestLongDrain"}` + "\n"
	const unlisted = `{"Action":"skip","Package":"github.com/criticizer/criticizer/p4","Test":"TestX/case"}` + "\n"
	for name, tt := range map[string]struct {
		results, ci string
		fails       bool
	}{
		"no skip":                      {passed, "1", false},
		"a listed skip":                {passed + listed, "1", false},
		"an unlisted skip":             {passed + listed + unlisted, "1", true},
		"an unlisted skip, not in CI":  {passed + unlisted, "", false},
		"no test":                      {"", "", true},
		"output that is not test JSON": {"ok p4\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "test.json")
			if err := os.WriteFile(file, []byte(tt.results), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "tools/skips.sh", file)
			cmd.Env = append(os.Environ(), "CI="+tt.ci)
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails {
				t.Errorf("ended with %v:\n%s", err, out)
			}
			if listed := strings.Contains(string(out), "NOT LISTED"); listed != strings.Contains(tt.results, "TestX/case") {
				t.Errorf("printed\n%s", out)
			}
		})
	}
}

// A test that counts mails fails the run although its repetition passed.
func TestRepetitionsOfCountingTestsFail(t *testing.T) {
	t.Parallel()
	for report, fails := range map[string]bool{
		"": false,
		"x/store.TestRoles: 2 runs, 1 failures\n":                                           false,
		"x/store.TestRoles: 2 runs, 1 failures\nx/e2e.TestChaos/kill: 2 runs, 1 failures\n": true,
	} {
		file := filepath.Join(t.TempDir(), "reruns.txt")
		if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "tools/reruns.sh", file).CombinedOutput()
		if (err != nil) != fails || strings.Count(string(out), "RERUN ") != strings.Count(report, "\n") {
			t.Errorf("%q: %v:\n%s", report, err, out)
		}
	}
}
