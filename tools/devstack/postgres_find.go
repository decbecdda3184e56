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
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/store"
)

// errNoPostgres means that this machine has no usable Postgres.
var errNoPostgres = errors.New("no usable Postgres is installed")

// pgBinaries are one installation of Postgres.
type pgBinaries struct {
	dir   string // holds initdb and postgres
	major int
}

func (b pgBinaries) initdb() string   { return filepath.Join(b.dir, "initdb") }
func (b pgBinaries) postgres() string { return filepath.Join(b.dir, "postgres") }

// pgGlobs are where packages install binaries that are not on PATH.
var pgGlobs = []string{
	"/usr/lib/postgresql/*/bin",                        // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                 // Fedora, RHEL from postgresql.org
	"/opt/homebrew/opt/postgresql@*/bin",               // Homebrew, Apple silicon
	"/usr/local/opt/postgresql@*/bin",                  // Homebrew, Intel
	"/Applications/Postgres.app/*/*/*/bin",             // Postgres.app
	"/usr/libexec/postgresql*", "/usr/local/pgsql/bin", // Alpine, from source
}

// findPostgres returns the binaries on PATH, or those that pg_config reports, or
// the newest of those that the globs match. If made is not 0, it returns only
// binaries of that version: data of one version does not open in another.
func findPostgres(ctx context.Context, globs []string, made int) (pgBinaries, error) {
	usable := func(b pgBinaries) bool { return b.major >= store.OldestPostgres && (made == 0 || b.major == made) }
	found := installedPostgres(ctx, globs)
	if i := slices.IndexFunc(found, usable); i >= 0 {
		return found[i], nil
	}
	err := errNoPostgres
	if made != 0 {
		err = fmt.Errorf("%w: Postgres %d created the data, which make clean removes", err, made)
	}
	for _, b := range found {
		err = fmt.Errorf("%w; %s has version %d", err, b.dir, b.major)
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
	newest := readPgBinaries(ctx, others)
	slices.SortStableFunc(newest, func(a, b pgBinaries) int { return cmp.Compare(b.major, a.major) })
	return append(readPgBinaries(ctx, preferred), newest...)
}

// readPgBinaries returns the installations of a server in dirs, with their versions.
func readPgBinaries(ctx context.Context, dirs []string) []pgBinaries {
	var found []pgBinaries
	for _, dir := range dirs {
		b := pgBinaries{dir: dir}
		if _, err := os.Stat(b.initdb()); err != nil {
			continue
		}
		out, _ := exec.CommandContext(ctx, b.postgres(), "--version").Output()
		// "postgres (PostgreSQL) 15.18 (Debian 15.18-1)"
		if b.major = versionIn(string(out)); b.major > 0 {
			found = append(found, b)
		}
	}
	return found
}

var firstNumber = regexp.MustCompile(`\d+`)

// versionIn returns the first number in text, or 0.
func versionIn(text string) int {
	n, _ := strconv.Atoi(firstNumber.FindString(text)) // an empty string gives 0
	return n
}

// howToInstallPostgres is the hint of every error about missing binaries.
func howToInstallPostgres() string {
	return fmt.Sprintf("install Postgres %d or later (Debian, Ubuntu: apt-get install postgresql; "+
		"macOS: brew install postgresql@17; Fedora: dnf install postgresql-server), "+
		"or name a running server in CRITICIZER_DATABASE_URL", store.OldestPostgres)
}
