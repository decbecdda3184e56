package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/store"
)

// errNoPostgres says that this machine has no usable Postgres binaries.
var errNoPostgres = fmt.Errorf("no Postgres binaries of version %d or later", store.OldestPostgres)

// pgBinaries are one installation of Postgres.
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

// pgRepository has binaries for most systems.
const pgRepository = "https://repo1.maven.org/maven2"

// findPostgres returns the binaries on PATH, or else those pg_config knows, or
// else the newest of those the globs find. With made set it returns only
// binaries of that version: data made by one does not open in another.
func findPostgres(ctx context.Context, globs []string, made int) (pgBinaries, error) {
	usable := func(b pgBinaries) bool { return b.major >= store.OldestPostgres && (made == 0 || b.major == made) }
	found := installedPostgres(ctx, globs)
	if i := slices.IndexFunc(found, usable); i >= 0 {
		return found[i], nil
	}
	err := errNoPostgres
	for _, b := range found {
		err = fmt.Errorf("%w; version %d in %s is not it", err, b.major, b.dir)
	}
	return pgBinaries{}, err
}

// installedPostgres lists what this machine has, preferred first.
func installedPostgres(ctx context.Context, globs []string) []pgBinaries {
	var preferred, others []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(initdb); err == nil {
			preferred = append(preferred, filepath.Dir(target))
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		preferred = append(preferred, strings.TrimSpace(string(out)))
	}
	for _, glob := range globs {
		matches, _ := filepath.Glob(glob) // the only error is a malformed pattern
		others = append(others, matches...)
	}
	newest := readAllPgBinaries(ctx, others)
	slices.SortStableFunc(newest, func(a, b pgBinaries) int { return cmp.Compare(b.major, a.major) })
	return append(readAllPgBinaries(ctx, preferred), newest...)
}

func readAllPgBinaries(ctx context.Context, dirs []string) []pgBinaries {
	var found []pgBinaries
	for _, dir := range dirs {
		if b, ok := readPgBinaries(ctx, dir); ok {
			found = append(found, b)
		}
	}
	return found
}

var firstNumber = regexp.MustCompile(`\d+`)

// versionIn returns the first number in text, or 0.
func versionIn(text string) int {
	n, _ := strconv.Atoi(firstNumber.FindString(text)) // nothing is 0
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

// howToInstallPostgres ends every error about missing binaries.
func howToInstallPostgres() string {
	return fmt.Sprintf("install Postgres %d or later (Debian, Ubuntu: apt-get install postgresql; "+
		"macOS: brew install postgresql@17; Fedora: dnf install postgresql-server), "+
		"or name a running server in CRITICIZER_DATABASE_URL", store.OldestPostgres)
}
