package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// oldestPostgres is the oldest major version the schema works with.
const oldestPostgres = 15

// errNoPostgres says that this machine has no usable Postgres binaries.
var errNoPostgres = errors.New("no Postgres binaries")

// PgBinaries are one installation of Postgres.
type pgBinaries struct {
	dir   string // holds initdb and postgres
	major int
}

func (b pgBinaries) initdb() string   { return filepath.Join(b.dir, "initdb") }
func (b pgBinaries) postgres() string { return filepath.Join(b.dir, "postgres") }

// pgGlobs are where packages put their binaries without putting them on PATH.
var pgGlobs = []string{
	"/usr/lib/postgresql/*/bin",                        // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                 // Fedora, RHEL from postgresql.org
	"/opt/homebrew/opt/postgresql@*/bin",               // Homebrew, Apple silicon
	"/usr/local/opt/postgresql@*/bin",                  // Homebrew, Intel
	"/Applications/Postgres.app/*/*/*/bin",             // Postgres.app
	"/usr/libexec/postgresql*", "/usr/local/pgsql/bin", // Alpine, from source
}

// findPostgres returns the binaries on PATH, or else those pg_config knows, or
// else the newest of those the globs find. With wantMajor set it returns only
// binaries of that version: data made by one does not open in another.
func findPostgres(ctx context.Context, globs []string, wantMajor int) (pgBinaries, error) {
	var found []pgBinaries
	for _, dir := range pgDirs(ctx, globs) {
		if b, ok := readPgBinaries(ctx, dir); ok && (wantMajor == 0 || b.major == wantMajor) {
			found = append(found, b)
		}
	}
	for _, b := range found {
		if b.major >= oldestPostgres {
			return b, nil
		}
	}
	if len(found) > 0 {
		return pgBinaries{}, fmt.Errorf("%w of version %d or later: found version %d in %s", errNoPostgres, oldestPostgres, found[0].major, found[0].dir)
	}
	return pgBinaries{}, errNoPostgres
}

// pgDirs lists the directories to look in, preferred first.
func pgDirs(ctx context.Context, globs []string) []string {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			initdb = real
		}
		dirs = append(dirs, filepath.Dir(initdb))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	var globbed []string
	for _, glob := range globs {
		matches, _ := filepath.Glob(glob) // the only error is a malformed pattern
		globbed = append(globbed, matches...)
	}
	slices.SortStableFunc(globbed, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
	return append(dirs, globbed...)
}

var firstNumber = regexp.MustCompile(`\d+`)

// versionIn returns the version a directory's name tells, or 0.
func versionIn(dir string) int {
	n, _ := strconv.Atoi(firstNumber.FindString(dir))
	return n
}

// readPgBinaries looks whether dir holds a server, and of which version.
func readPgBinaries(ctx context.Context, dir string) (pgBinaries, bool) {
	b := pgBinaries{dir: dir}
	if _, err := os.Stat(b.initdb()); err != nil {
		return b, false
	}
	out, err := exec.CommandContext(ctx, b.postgres(), "--version").Output()
	if err != nil {
		return b, false
	}
	b.major = versionIn(string(out)) // "postgres (PostgreSQL) 15.18 (Debian 15.18-1)"
	return b, b.major > 0
}

// howToInstallPostgres names the package for this system.
func howToInstallPostgres() string {
	packages := map[string]string{
		"Debian or Ubuntu": "apt-get install postgresql",
		"macOS":            "brew install postgresql@17",
		"Fedora":           "dnf install postgresql-server",
	}
	first := "Debian or Ubuntu"
	if runtime.GOOS == "darwin" {
		first = "macOS"
	}
	lines := []string{first + ": " + packages[first]}
	for _, system := range []string{"Debian or Ubuntu", "macOS", "Fedora"} {
		if system != first {
			lines = append(lines, system+": "+packages[system])
		}
	}
	return "install Postgres " + strconv.Itoa(oldestPostgres) + " or later (" + strings.Join(lines, "; ") +
		"), or name a running server in CRITICIZER_DATABASE_URL"
}
