package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// newRepository makes a git repository with n commits.
func newRepository(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	for range n {
		git("commit", "--quiet", "--allow-empty", "--message=change")
	}
	return dir
}

func TestOpenDepot(t *testing.T) {
	t.Parallel()
	sample, repo, unborn, plain := makeClone(t), newRepository(t, 1), newRepository(t, 0), t.TempDir()
	for name, c := range map[string]struct {
		opts options
		want depot  // but for its id
		err  string // in the error
	}{
		"the sample of the clone":     {opts: options{root: sample}, want: depot{path: filepath.Join(sample, "tools", "devstack", "harbor.txtar")}},
		"another repository":          {opts: options{root: plain, repo: repo}, want: depot{path: repo}},
		"a root without the sample":   {opts: options{root: plain}, err: "REPO="},
		"a file":                      {opts: options{root: plain, depot: filepath.Join(sample, "tools", "devstack", "harbor.txtar")}, want: depot{path: filepath.Join(sample, "tools", "devstack", "harbor.txtar")}},
		"both":                        {opts: options{root: sample, repo: repo, depot: repo}, err: "REPO"},
		"a file that is not there":    {opts: options{root: sample, depot: filepath.Join(plain, "x")}, err: "DEPOT="},
		"another plain directory":     {opts: options{root: repo, repo: plain}, err: "REPO="},
		"a repository without commit": {opts: options{root: repo, repo: unborn}, err: unborn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := openDepot(t.Context(), c.opts)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
				return
			}
			testkit.NoError(t, err)
			if got.path != c.want.path || got.id == "" {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestARealServerNeedsPathsAndAUser(t *testing.T) {
	command := filepath.Join(t.TempDir(), "p4")
	mustWrite(t, command, "#!/bin/sh\n", 0o755)
	t.Setenv("P4PORT", "ssl:perforce:1666")
	t.Setenv("P4USER", "reader")
	t.Setenv("CRITICIZER_P4_ALLOWED_PATHS", "//depot/a/..., //depot/b/...")
	t.Setenv("PATH", filepath.Dir(command))
	d, err := realDepot(t.Context(), options{})
	if err != nil || d.port != "ssl:perforce:1666" || !slices.Equal(d.allowed, []string{"//depot/a/...", "//depot/b/..."}) {
		t.Errorf("got %+v, %v", d, err)
	}
	refuses := func(want string) {
		t.Helper()
		if _, err := realDepot(t.Context(), options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	refuses("P4PORT")
	t.Setenv("P4USER", "")
	refuses("P4USER")
	t.Setenv("CRITICIZER_P4_ALLOWED_PATHS", "")
	refuses("CRITICIZER_P4_ALLOWED_PATHS")
}

func TestDepotIDsAreReadableAndDiffer(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, opts := range []options{
		{repo: "/a/My Project.git"}, {repo: "/b/My Project.git"}, {repo: "/a/My Project.git", databaseURL: "postgres://x"},
		{repo: "/a/My Project.git", model: "m"}, {repo: "/a/My Project.git", baseURL: "http://localhost/v1", model: "m"},
	} {
		id := opts.depotID(opts.repo)
		if !strings.HasPrefix(id, "my-project-git-") {
			t.Errorf("id %q does not begin with the name of the depot", id)
		}
		ids[id] = true
	}
	if len(ids) != 5 {
		t.Errorf("ids collide: %v", ids)
	}
	if id := (options{}).depotID("/"); strings.HasPrefix(id, "-") || len(id) != 8 {
		t.Errorf("id of the root: %q", id)
	}
}

// makeClone makes a directory that has the sample depot of a clone.
func makeClone(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	mustWrite(t, filepath.Join(root, "tools", "devstack", "harbor.txtar"), "-- change 1 --\nchange\n", 0o644)
	return root
}
