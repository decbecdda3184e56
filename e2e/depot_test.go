package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	clean  = "package a\n\nfunc A() int { return 1 }\n"
	faulty = "package a\n\nimport \"os\"\n\n// TODO: close it\nfunc A() int {\n\tf, _ := os.Open(\"x\")\n\t_ = f\n\treturn 1\n}\n"
)

// newDepot makes a git repository with one commit, that is one changelist, per map.
func newDepot(tb testing.TB, commits ...map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	git(tb, dir, "init", "-q", "-b", "main")
	commit(tb, dir, commits...)
	return dir
}

// manyChanges returns n changes of one file.
func manyChanges(n int) []map[string]string {
	changes := make([]map[string]string, n)
	for i := range changes {
		changes[i] = map[string]string{"a.go": faulty + fmt.Sprintf("// %d\n", i)}
	}
	return changes
}

// commit adds changelists to a depot.
func commit(tb testing.TB, dir string, commits ...map[string]string) {
	tb.Helper()
	for i, files := range commits {
		for name, body := range files {
			addFile(tb, dir, name, body)
		}
		git(tb, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("Change number %d", i+1))
	}
}

// addFile adds a file to the next commit.
func addFile(tb testing.TB, depot, name, body string) {
	tb.Helper()
	writeFile(tb, filepath.Join(depot, name), 0o600, body)
	git(tb, depot, "add", "-A")
}

// git runs git in dir and returns its output.
func git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Alice", "-c", "user.email=alice@elsewhere.test", "-c", "commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}
