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
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

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

// embeddedBinaries stand for the Postgres that embedded-postgres downloads.
var embeddedBinaries = pgBinaries{major: versionIn(string(embeddedVersion))}

const embeddedVersion = embeddedpostgres.V17

// embeddedConfig configures a downloaded Postgres for the cluster c of the stack in
// base. The download is in buildDir, for the next run.
func embeddedConfig(c pgCluster, base, buildDir string) embeddedpostgres.Config {
	return embeddedpostgres.DefaultConfig().
		Version(embeddedVersion).
		Port(uint32(c.port)). //nolint:gosec // choosePort returns a port
		Username(pgUser).Password(c.password).
		Encoding("UTF8").Locale("C").
		DataPath(c.data).RuntimePath(embeddedRuntime(base)).CachePath(filepath.Join(buildDir, "postgres")).
		StartParameters(pgParameters).StartTimeout(time.Minute)
}

// embeddedRuntime is where the library unpacks the binaries. They stay there only
// while the server runs.
func embeddedRuntime(base string) string { return filepath.Join(base, "postgres-runtime") }

// startEmbedded downloads Postgres, unless an earlier run has, and starts it as a
// part.
func startEmbedded(ctx context.Context, s *stack, config embeddedpostgres.Config) error {
	log, err := os.Create(filepath.Join(s.base, "log", "postgres.log"))
	if err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	server := embeddedpostgres.NewDatabase(config.Logger(log))
	err = s.out.during("starting a downloaded Postgres, because none is installed", func() error {
		started := make(chan error, 1)
		go func() { started <- server.Start() }() // Start takes no context
		select {
		case err := <-started:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("no usable Postgres is installed, and downloading and starting Postgres %s failed: %w: %s", embeddedVersion, err, howToInstallPostgres())
	}
	s.add(func() {
		if err := server.Stop(); err != nil {
			s.out.say("stop Postgres: %v: see %s", err, log.Name())
		}
		_ = os.RemoveAll(embeddedRuntime(s.base))
	})
	return nil
}

// stopLeftoverEmbedded stops a downloaded Postgres that a killed devstack left
// running: the library has started it as a daemon, without a pid file of ours.
func stopLeftoverEmbedded(ctx context.Context, base string) {
	pgCtl := filepath.Join(embeddedRuntime(base), "bin", "pg_ctl")
	// It fails if no server is running.
	_ = exec.CommandContext(ctx, pgCtl, "stop", "-w", "-m", "fast", "-D", filepath.Join(base, "postgres")).Run()
}
