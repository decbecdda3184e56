package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// newDepot makes a git repository of which each map is one commit.
func newDepot(t *testing.T, commits ...map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, commits...)
	return dir
}

// commit adds changelists to a depot.
func commit(t *testing.T, dir string, commits ...map[string]string) {
	t.Helper()
	for i, files := range commits {
		for name, body := range files {
			addFile(t, dir, name, body)
		}
		git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("Change number %d", i+1))
	}
}

// addFile puts a file into what is committed next.
func addFile(t *testing.T, depot, name, body string) {
	t.Helper()
	path := filepath.Join(depot, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, 0o600, body)
	git(t, depot, "add", "-A")
}

// git runs git in dir and returns what it said.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Alice", "-c", "user.email=alice@elsewhere.test", "-c", "commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}
