package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/store"
)

// pgBinaries are one installation of Postgres.
type pgBinaries struct {
	dir   string // holds initdb and postgres
	major int
}

// pgGlobs are where packages install binaries that are not on PATH.
var pgGlobs = []string{
	"/usr/lib/postgresql/*/bin",                        // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                 // Fedora, RHEL from postgresql.org
	"/opt/homebrew/opt/postgresql@*/bin",               // Homebrew, Apple silicon
	"/usr/local/opt/postgresql@*/bin",                  // Homebrew, Intel
	"/Applications/Postgres.app/*/*/*/bin",             // Postgres.app
	"/usr/libexec/postgresql*", "/usr/local/pgsql/bin", // Alpine, from source
}

// choosePostgres returns the first usable installation of found, or else
// embeddedBinaries. If made is not 0, that version created the data, and no other
// version can open it.
func choosePostgres(found []pgBinaries, made int, root bool) (pgBinaries, error) {
	tried := []string{"no usable Postgres is installed"}
	for _, b := range found {
		if b.major >= store.OldestPostgres && (made == 0 || b.major == made) {
			return b, nil
		}
		tried = append(tried, fmt.Sprintf("%s has version %d", b.dir, b.major))
	}
	switch {
	case root:
		tried = append(tried, "a downloaded Postgres refuses to run as root")
	case made != 0 && made != embeddedBinaries.major:
		tried = append(tried, fmt.Sprintf("Postgres %d created the data, which make clean removes", made))
	default:
		return embeddedBinaries, nil
	}
	return pgBinaries{}, fmt.Errorf("%s: %s", strings.Join(tried, "; "), howToInstallPostgres())
}

// installedPostgres lists what this machine has: the one on PATH, then those that
// the globs match, newest first.
func installedPostgres(ctx context.Context, globs []string) []pgBinaries {
	var found []pgBinaries
	for _, glob := range globs {
		dirs, _ := filepath.Glob(glob) // the only error is a malformed pattern
		for _, dir := range dirs {
			found = appendBinaries(ctx, found, filepath.Join(dir, "initdb"))
		}
	}
	slices.SortStableFunc(found, func(a, b pgBinaries) int { return cmp.Compare(b.major, a.major) })
	onPath, _ := exec.LookPath("initdb")
	return append(appendBinaries(ctx, nil, onPath), found...)
}

// appendBinaries appends the installation that initdb belongs to, if it has a
// server.
func appendBinaries(ctx context.Context, found []pgBinaries, initdb string) []pgBinaries {
	target, err := filepath.EvalSymlinks(initdb)
	if err != nil {
		return found
	}
	b := pgBinaries{dir: filepath.Dir(target)}
	out, _ := exec.CommandContext(ctx, filepath.Join(b.dir, "postgres"), "--version").Output()
	// "postgres (PostgreSQL) 15.18 (Debian 15.18-1)"
	if b.major = versionIn(string(out)); b.major == 0 {
		return found
	}
	return append(found, b)
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
