package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// A repo is a git repository of one test.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is missing: CI must not skip the git depots")
		}
		t.Skip("git is missing")
	}
	r := repo{t, t.TempDir()}
	r.git("", "init", "-q", "-b", "main")
	return r
}

// git runs git with fixed names and times.
func (r repo) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "core.quotePath=false"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@real.example", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@real.example",
		"GIT_AUTHOR_DATE=1714557600 +0000", "GIT_COMMITTER_DATE=1714557600 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits everything in the directory.
func (r repo) commit(message string, more ...string) {
	r.t.Helper()
	r.git("", "add", "-A")
	r.git("", append([]string{"commit", "-q", "--allow-empty", "-m", message}, more...)...)
}

func (r repo) env(more ...string) []string {
	return append([]string{"P4SIM_DEPOT=" + r.dir, "P4SIM_STATE=" + r.t.TempDir(), "P4USER=svc", "PATH=" + os.Getenv("PATH")}, more...)
}

// described lists the files of a change as "path#rev action type".
func described(t *testing.T, env []string, change int) string {
	t.Helper()
	all := records(t, env, "describe", fmt.Sprint(change))
	if len(all) != 1 {
		t.Fatalf("describe %d: %d records", change, len(all))
	}
	var files []string
	for i := 0; all[0][fmt.Sprint("depotFile", i)] != ""; i++ {
		get := func(key string) string { return all[0][fmt.Sprint(key, i)] }
		files = append(files, fmt.Sprintf("%s#%s %s %s", get("depotFile"), get("rev"), get("action"), get("type")))
	}
	return strings.Join(files, ", ")
}

const long = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func TestGitHistoryBecomesChangelists(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a.txt", long)
	r.write("bin", "\x00\x01")
	r.write("odd @#%*é.txt", "odd")
	r.write("run.sh", "#!/bin/sh\n")
	testkit.NoError(t, os.Symlink("a.txt", filepath.Join(r.dir, "link")))
	testkit.NoError(t, os.Chmod(filepath.Join(r.dir, "run.sh"), 0o700))
	r.git("", "add", "-A")
	r.git("", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	r.git("", "commit", "-q", "-m", "All kinds\n\nof files.", "--author", "12345+Zoë@users.noreply.github.com <12345+zoe@users.noreply.github.com>")
	r.git("", "rm", "-q", "--cached", "sub")
	r.git("", "mv", "a.txt", "dir.txt")
	r.write("dir.txt", long+"10\n")
	r.commit("Rename")
	r.git("", "rm", "-q", "bin")
	r.commit("Delete")
	r.write("bin", "text now\n")
	r.commit("Again")

	env := r.env()
	for change, want := range []string{
		1: "//depot/a.txt#1 add text, //depot/bin#1 add binary, //depot/link#1 add symlink, //depot/odd %40%23%25%2Aé.txt#1 add text, //depot/run.sh#1 add text+x",
		2: "//depot/a.txt#2 move/delete text, //depot/dir.txt#1 move/add text",
		3: "//depot/bin#2 delete binary",
		4: "//depot/bin#3 add text",
	} {
		if want == "" {
			continue
		}
		if got := described(t, env, change); got != want {
			t.Errorf("change %d: got %s\nwant %s", change, got, want)
		}
	}
	holds(t, records(t, env, "describe", "1")[0], record{"user": "zoe", "client": "zoe-ws", "time": "1714557600", "desc": "All kinds\n\nof files.\n"})
	for path, want := range map[string]string{"//depot/link": "a.txt", "//depot/odd %40%23%25%2Aé.txt": "odd", "//depot/a.txt#1": long} {
		if got := records(t, env, "print", path)[1]["data"]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	users := records(t, env, "users", "ada", "zoe")
	holds(t, users[0], record{"Email": "ada@example.test", "FullName": "Ada"})
	holds(t, users[1], record{"Email": "zoe@example.test", "FullName": "12345+Zoë@users.noreply.github.com"})
	holds(t, records(t, append(env, "P4SIM_MAIL_DOMAIN=keep"), "users", "ada")[0], record{"Email": "ada@real.example"})
}

// Every commit of the first-parent history is a change, and each change is
// possible: no file is added twice or changed after it was deleted.
func TestAwkwardHistoriesStayConsistent(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "a"+long)
	r.write("b", "b"+long)
	r.commit("start")
	r.git("", "mv", "a", "tmp")
	r.git("", "mv", "b", "a")
	r.git("", "mv", "tmp", "b")
	r.commit("swap")
	r.git("", "mv", "-f", "a", "b")
	r.commit("rename onto another")
	r.commit("empty")
	r.git("", "checkout", "-q", "-b", "side")
	r.write("c", "c")
	r.commit("on a branch")
	r.git("", "checkout", "-q", "main")
	r.write("d", "d")
	r.commit("on main")
	r.git("", "merge", "-q", "--no-ff", "-m", "merge", "side")
	r.git("", "branch", "-f", "side", "HEAD~2")
	r.git("", "merge", "-q", "-s", "ours", "--no-ff", "-m", "merge nothing", "side~1")
	r.git("", "rm", "-q", "d")
	r.write("d/now/a/dir", "d")
	r.commit("file becomes directory\n")

	env := r.env()
	count := r.git("", "rev-list", "--first-parent", "--count", "HEAD")
	if got := records(t, env, "changes", "-m", "1")[0]["change"]; got != count {
		t.Errorf("the newest change is %s, want %s", got, count)
	}
	checkConsistent(t, env, r)
	if got := described(t, env, 6); got != "//depot/c#1 add text" {
		t.Errorf("the merge brought %s", got)
	}
}

// checkConsistent applies all changes and compares the result with git's tree.
func checkConsistent(t *testing.T, env []string, r repo) {
	t.Helper()
	live := map[string]bool{}
	rev := map[string]int{}
	changes := records(t, env, "changes")
	slices.Reverse(changes)
	for _, c := range changes {
		n := c["change"]
		d := records(t, env, "describe", n)[0]
		for i := 0; d[fmt.Sprint("depotFile", i)] != ""; i++ {
			path, action := d[fmt.Sprint("depotFile", i)], d[fmt.Sprint("action", i)]
			rev[path]++
			adds := action == "add" || action == "move/add"
			if live[path] == adds || d[fmt.Sprint("rev", i)] != fmt.Sprint(rev[path]) {
				t.Errorf("change %s: %s of %s#%v, live %t", n, action, path, d[fmt.Sprint("rev", i)], live[path])
			}
			live[path] = action == "edit" || adds
		}
	}
	var names []string
	for name := range strings.Lines(r.git("", "ls-tree", "-r", "--name-only", "HEAD") + "\n") {
		names = append(names, "//depot/"+encodePath(strings.TrimSpace(name)))
	}
	var present []string
	for _, f := range records(t, env, "files", "//...") {
		if !strings.HasSuffix(f["action"], "delete") {
			present = append(present, f["depotFile"])
		}
	}
	if !slices.Equal(present, names) {
		t.Errorf("files are %q, want %q", present, names)
	}
}

func TestNewCommitsAreAddedAndRewrittenOnesReplaced(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	env := r.env()
	for i := range 3 {
		r.write("a", fmt.Sprint(i))
		r.commit(fmt.Sprint("number ", i))
	}
	holds(t, records(t, env, "changes", "-m", "1")[0], record{"change": "3"})
	r.write("a", "4")
	r.commit("number 4")
	holds(t, records(t, env, "changes", "-m", "1")[0], record{"change": "4", "desc": "number 4\n"})
	r.git("", "reset", "-q", "--hard", "HEAD~2")
	r.write("b", "other")
	r.commit("another history")
	holds(t, records(t, env, "changes", "-m", "1")[0], record{"change": "3", "desc": "another history\n"})
	holds(t, records(t, env, "describe", "4")[0], record{"code": "error", "generic": "2"})
	checkConsistent(t, env, r)
}

func TestRepositoryWithoutCommitsIsAnError(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	got := p4(r.env(), "", "changes")
	if got.exit != 1 || !strings.HasPrefix(got.stderr, "p4sim: error: ") {
		t.Errorf("a repository without commits: %+v", got)
	}
}
