package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	mustWrite(t, filepath.Join(lib, "18", "bin", "psql"), "", 0o755) // a client alone is no server
	path := t.TempDir()
	fakePostgres(t, filepath.Join(path, "new"), "16.1")
	fakePostgres(t, filepath.Join(path, "old"), "12.0")
	mustWrite(t, filepath.Join(path, "config", "pg_config"), "#!/bin/sh\necho "+filepath.Join(lib, "15", "bin")+"\n", 0o755)
	globs := []string{filepath.Join(lib, "*", "bin")}

	for name, c := range map[string]struct {
		path  string
		globs []string
		made  int
		want  int    // major version; 0: none
		hint  string // in the error
	}{
		"those on PATH come first":                     {path: "new", globs: globs, want: 16},
		"then those of pg_config":                      {path: "config", globs: globs, want: 15},
		"then the newest of the usual places":          {path: "none", globs: globs, want: 17},
		"a version that is too old is passed over":     {path: "old", globs: globs, want: 17},
		"only the version that made the data opens it": {path: "new", globs: globs, made: 15, want: 15},
		"only old ones":                                {path: "old", hint: "has version 12"},
		"none at all":                                  {path: "none", hint: "no usable Postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Join(path, c.path))
			got, err := findPostgres(t.Context(), c.globs, c.made)
			if got.major != c.want {
				t.Errorf("found %+v (%v), want version %d", got, err, c.want)
			}
			if c.want == 0 && (!errors.Is(err, errNoPostgres) || !strings.Contains(err.Error(), c.hint)) {
				t.Errorf("error %v, want errNoPostgres with %q", err, c.hint)
			}
		})
	}
}

func TestAKeptSecretStaysTheSame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	first, err := keptSecret(path, randomText)
	if err != nil {
		t.Fatal(err)
	}
	again, err := keptSecret(path, randomText)
	if err != nil || first != again || len(first) < 20 {
		t.Errorf("secrets %q and %q, %v", first, again, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of its file: %v, %v", info.Mode(), err)
	}
}
