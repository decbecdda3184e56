package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

func TestChoosePostgres(t *testing.T) {
	lib := t.TempDir()
	for _, version := range []string{"9.6", "15.18", "17.2"} {
		major, _, _ := strings.Cut(version, ".")
		fakePostgres(t, filepath.Join(lib, major, "bin"), version)
	}
	mustWrite(t, filepath.Join(lib, "18", "bin", "psql"), "", 0o755) // a client alone is not a server
	path := t.TempDir()
	fakePostgres(t, filepath.Join(path, "new"), "16.1")
	fakePostgres(t, filepath.Join(path, "old"), "12.0")
	globs := []string{filepath.Join(lib, "*", "bin")}

	for name, c := range map[string]struct {
		path  string
		globs []string
		made  int
		root  bool
		want  int // major version; 0: an error
	}{
		"the one on PATH comes first":                  {path: "new", globs: globs, want: 16},
		"then the newest of the usual places":          {path: "none", globs: globs, want: 17},
		"also for root":                                {path: "none", globs: globs, root: true, want: 17},
		"a version that is too old is not used":        {path: "old", globs: globs, want: 17},
		"only the version that made the data opens it": {path: "new", globs: globs, made: 15, want: 15},
		"none at all":                                  {path: "none", want: embedded},
		"only old ones":                                {path: "old", want: embedded},
		"none, and data of the embedded one":           {path: "none", made: embeddedBinaries.major, want: embedded},
		"none, and data of another version":            {path: "none", made: 15},
		"none, as root":                                {path: "none", root: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Join(path, c.path))
			got, err := choosePostgres(installedPostgres(t.Context(), c.globs), c.made, c.root)
			want := c.want
			if want == embedded {
				want = embeddedBinaries.major
			}
			if got.major != want || (got == embeddedBinaries) != (c.want == embedded) || (err != nil) != (c.want == 0) {
				t.Errorf("chose %+v, %v, want version %d", got, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), howToInstallPostgres()) {
				t.Errorf("error %v has no hint", err)
			}
		})
	}
}

// embedded stands for the version of the downloaded Postgres in TestChoosePostgres.
const embedded = -1

func TestADownloadThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	repository := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(repository.Close)
	ctx, s := testStack(t)
	port, err := freePort()
	testkit.NoError(t, err)
	config := embeddedConfig(pgCluster{data: filepath.Join(s.base, "postgres"), port: port}, s.base, s.base)
	err = startEmbedded(ctx, s, config.BinaryRepositoryURL(repository.URL))
	if err == nil || !strings.Contains(err.Error(), string(embeddedVersion)) || !strings.Contains(err.Error(), howToInstallPostgres()) {
		t.Errorf("error %v, want one with the version and the hint", err)
	}
	if len(s.stops) != 0 {
		t.Error("a part was added")
	}
}

// A clone in the folder of a deleted one makes a cluster of its own. A later run keeps it.
func TestDataOfADeletedCloneIsRemoved(t *testing.T) {
	t.Parallel()
	_, s := testStack(t)
	first, err := newCluster(s, options{forTests: true})
	testkit.NoError(t, err)
	left := filepath.Join(first.data, "PG_VERSION")
	if os.Geteuid() == 0 {
		t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(first.data)) })
	}
	testkit.NoError(t, errors.Join(os.MkdirAll(first.data, 0o700), os.WriteFile(left, []byte("15\n"), 0o600)))
	later, err := newCluster(s, options{forTests: true})
	if _, missing := os.Stat(left); err != nil || missing != nil || later.password != first.password {
		t.Errorf("a later run: %v, %v, the same password %t", err, missing, later.password == first.password)
	}
	password := filepath.Join(s.base, "postgres.password")
	if info, err := os.Stat(password); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the password's file: %v, %v", info.Mode(), err)
	}
	testkit.NoError(t, os.Remove(password))
	anew, err := newCluster(s, options{forTests: true})
	if _, there := os.Stat(left); err != nil || there == nil || anew.password == first.password {
		t.Errorf("a new clone: %v; the data is there %t, the same password %t", err, there == nil, anew.password == first.password)
	}
}
