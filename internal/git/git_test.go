package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// commit makes a repository with one commit of one file, and returns the id of its blob.
func commit(t *testing.T, dir string) (blob string) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "a.c"), []byte("int a;\n"), 0o600))
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "a.c")
	git(t, dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x")
	return strings.TrimSpace(git(t, dir, "rev-parse", "HEAD:a.c"))
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	main := t.TempDir()
	blob := commit(t, main)
	for _, name := range []string{"below", "objects", "refs"} {
		testkit.NoError(t, os.Mkdir(filepath.Join(main, name), 0o700))
	}
	more := t.TempDir()
	worktree, bare, shallow, packed := filepath.Join(more, "worktree"), filepath.Join(more, "bare"), filepath.Join(more, "shallow"), filepath.Join(more, "packed")
	git(t, main, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "y", "--allow-empty")
	git(t, main, "worktree", "add", "-q", worktree)
	git(t, main, "clone", "-q", "--bare", main, bare)
	git(t, main, "clone", "-q", "--depth=1", "file://"+main, shallow)
	git(t, main, "clone", "-q", main, packed)
	git(t, packed, "gc", "-q")
	for name, dir := range map[string]string{"a clone": main, "a directory in it": filepath.Join(main, "below"), "a linked worktree": worktree, "a bare one": bare, "a shallow one": shallow, "packed refs": packed} {
		r, err := Open(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		log, logErr := r.Output(t.Context(), "log", "--format=%s", "HEAD")
		if _, err := r.Blob(blob, len("int a;\n")-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: a blob over the limit: %v", name, err)
		}
		content, blobErr := r.Blob(blob, len("int a;\n"))
		if logErr != nil || blobErr != nil || !strings.HasPrefix(log, "y\n") || string(content) != "int a;\n" {
			t.Errorf("%s: log %q, %v; content %q, %v", name, log, logErr, content, blobErr)
		}
		own := r.own
		testkit.NoError(t, r.Close())
		if _, err := os.Stat(own); !os.IsNotExist(err) {
			t.Errorf("%s: %v, want nothing left", name, err)
		}
	}
	if _, err := Open(more); err == nil {
		t.Error("a directory without a repository was opened")
	}
}

// No configuration of a repository makes git run a program, even if objects are missing.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(dir, run string){
		"a remote that has what is missing": func(dir, run string) {
			for _, setting := range [][]string{
				{"core.repositoryFormatVersion", "1"}, {"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"},
				{"remote.origin.url", "ext::" + run}, {"protocol.ext.allow", "always"},
			} {
				git(t, dir, "config", setting[0], setting[1])
			}
		},
		"a monitor, a pager and an external diff": func(dir, run string) {
			for _, key := range []string{"core.fsmonitor", "core.pager", "pager.log", "diff.external", "core.sshCommand", "alias.log", "core.hooksPath"} {
				git(t, dir, "config", key, strings.ReplaceAll(run, "% ", " "))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			blob := commit(t, dir)
			touched := filepath.Join(dir, "touched")
			configure(dir, "sh -c touch% "+touched)
			testkit.NoError(t, os.RemoveAll(filepath.Join(dir, ".git", "objects", blob[:2])))
			r, err := Open(dir)
			testkit.NoError(t, err)
			if content, err := r.Blob(blob, 1<<20); err == nil {
				t.Errorf("a missing object has the content %q", content)
			}
			if _, err := r.Output(t.Context(), "log", "-p", "HEAD"); err == nil {
				t.Error("the diff of a missing object was made")
			}
			_ = r.Close()
			if _, err := os.Stat(touched); !os.IsNotExist(err) {
				t.Errorf("git ran a command of the repository: %v", err)
			}
		})
	}
}
