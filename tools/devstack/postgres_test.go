package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// fakePostgres makes a directory of binaries that claim a version.
func fakePostgres(t *testing.T, dir, version string) {
	t.Helper()
	mustWrite(t, filepath.Join(dir, "initdb"), "#!/bin/sh\n", 0o755)
	mustWrite(t, filepath.Join(dir, "postgres"), fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Debian %s-1)'\n", version, version), 0o755)
}

func TestFindPostgres(t *testing.T) {
	lib := t.TempDir()
	for _, version := range []string{"9.6", "15.18", "17.2"} {
		major, _, _ := strings.Cut(version, ".")
		fakePostgres(t, filepath.Join(lib, major, "bin"), version)
	}
	mustWrite(t, filepath.Join(lib, "18", "bin", "psql"), "", 0o755) // a client alone is not a server
	path := t.TempDir()
	fakePostgres(t, filepath.Join(path, "new", "bin"), "16.1")
	fakePostgres(t, filepath.Join(path, "old", "bin"), "12.0")
	globs := []string{filepath.Join(lib, "*", "bin")}
	for name, c := range map[string]struct {
		path  string
		globs []string
		dir   string
		major int
	}{
		"the one on PATH comes first":           {"new", globs, filepath.Join(path, "new"), 16},
		"then the newest of the usual places":   {"none", globs, filepath.Join(lib, "17"), 17},
		"a version that is too old is not used": {"old", globs, filepath.Join(lib, "17"), 17},
		"none at all":                           {"none", nil, "", 0},
		"only old ones":                         {"old", nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Join(path, c.path, "bin"))
			if dir, major := findPostgres(t.Context(), c.globs); dir != c.dir || major != c.major {
				t.Errorf("found version %d in %q", major, dir)
			}
		})
	}
}

// A clone in the folder of a deleted one makes a cluster of its own. A later run keeps it.
func TestDataOfADeletedCloneIsRemoved(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	first, _, err := newCluster(ctx, s, options{forTests: true})
	testkit.NoError(t, err)
	if os.Geteuid() == 0 {
		t.Cleanup(func() { _ = os.RemoveAll(first.Dir) })
	}
	left := filepath.Join(first.Dir, "PG_VERSION")
	testkit.NoError(t, os.WriteFile(left, []byte("15\n"), 0o600))
	later, _, err := newCluster(ctx, s, options{forTests: true})
	if _, missing := os.Stat(left); err != nil || missing != nil || later.Password != first.Password {
		t.Errorf("a later run: %v, %v, the same password %t", err, missing, later.Password == first.Password)
	}
	password := filepath.Join(s.base, "postgres.password")
	if info, err := os.Stat(password); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the password's file: %v, %v", info.Mode(), err)
	}
	testkit.NoError(t, os.Remove(password))
	anew, _, err := newCluster(ctx, s, options{forTests: true})
	if _, there := os.Stat(left); err != nil || there == nil || anew.Password == first.Password {
		t.Errorf("a new clone: %v; the data is there %t, the same password %t", err, there == nil, anew.Password == first.Password)
	}
}
