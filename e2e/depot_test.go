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
func newDepot(t testing.TB, commits ...map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, commits...)
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
func commit(t testing.TB, dir string, commits ...map[string]string) {
	t.Helper()
	for i, files := range commits {
		for name, body := range files {
			addFile(t, dir, name, body)
		}
		git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("Change number %d", i+1))
	}
}

// addFile adds a file to the next commit.
func addFile(t testing.TB, depot, name, body string) {
	t.Helper()
	writeFile(t, filepath.Join(depot, name), 0o600, body)
	git(t, depot, "add", "-A")
}

// git runs git in dir and returns its output.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Alice", "-c", "user.email=alice@elsewhere.test", "-c", "commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}
