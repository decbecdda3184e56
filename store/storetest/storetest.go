// Package storetest gives each test a database of its own on a real Postgres.
//
// A transaction per test, rolled back, does not work: the code under test opens
// transactions itself, in several roles and concurrently. Instead, each test locks one of
// a few clones of a migrated template database. A clone copies 350 files, ten times the
// work of deleting the rows of the test before, so the clones are used again.
package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
)

// URLVariable names the environment variable with the postgres:// URL of a
// superuser of a scratch cluster; `make test` starts one and sets it.
const URLVariable = "CRITICIZER_TEST_DATABASE_URL"

// A Database is the database of one test, with the current schema and no rows.
type Database struct {
	URL secret.Value // of the superuser
}

// New returns a clone of the migrated database that no other test has until this one
// ends. Without a cluster it skips the test; in CI it fails the test.
func New(tb testing.TB) *Database {
	tb.Helper()
	cluster := clusterURL(tb)
	migrated, err := template()
	if err != nil {
		tb.Fatalf("create template database: %v", err)
	}
	name, err := acquire(tb, cluster, migrated)
	if err != nil {
		tb.Fatalf("acquire test database: %v", err)
	}
	return &Database{URL: secret.New(withDatabase(cluster, name))}
}

// NewEmpty returns a database without the schema, and drops it when the test ends.
func NewEmpty(tb testing.TB) *Database {
	tb.Helper()
	cluster, name := clusterURL(tb), "criticizer_test_"+rand.Text()
	admin(tb, cluster, fmt.Sprintf(`create database %q`, name))
	tb.Cleanup(func() { admin(tb, cluster, fmt.Sprintf(`drop database %q with (force)`, name)) })
	return &Database{URL: secret.New(withDatabase(cluster, name))}
}

// Open opens the database in role and closes it when the test ends.
func (d *Database) Open(tb testing.TB, role store.Role) *store.DB {
	tb.Helper()
	db, err := store.Open(tb.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: d.URL}, role)
	if err != nil {
		tb.Fatalf("open test database as %q: %v", role, err)
	}
	tb.Cleanup(db.Close)
	return db
}

// Conn returns a connection of the superuser, to read and to break rows.
func (d *Database) Conn(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), d.URL.Reveal())
	if err != nil {
		tb.Fatalf("connect to test database: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func clusterURL(tb testing.TB) string {
	tb.Helper()
	cluster := os.Getenv(URLVariable)
	switch {
	case cluster != "":
	case os.Getenv("CI") != "":
		tb.Fatalf("%s is not set: in CI the database tests must run", URLVariable)
	default:
		tb.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; `make test` sets it", URLVariable)
	}
	return cluster
}

// admin runs one statement on the cluster's own database.
func admin(tb testing.TB, cluster, statement string) {
	tb.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // outlives the test's context
	defer stop()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		tb.Fatalf("connect to test cluster: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		tb.Errorf("%s: %v", statement, err)
	}
}

// template creates the migrated database, once per schema and cluster, and returns its
// name.
var template = sync.OnceValues(func() (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	name, err := templateName()
	if err != nil {
		return "", err
	}
	cluster := os.Getenv(URLVariable)
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }() // releases the lock
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	return name, build(ctx, conn, cluster, name)
})

// templateName contains a hash of the migrations.
func templateName() (string, error) {
	fingerprint, err := store.Schema().Fingerprint()
	if err != nil {
		return "", err
	}
	return "criticizer_template_" + fingerprint[:16], nil
}

// build migrates a database and then renames it, so that no test clones an unfinished
// template.
func build(ctx context.Context, conn *pgx.Conn, cluster, name string) error {
	unfinished := name + "_unfinished"
	for _, statement := range []string{
		fmt.Sprintf(`drop database if exists %q with (force)`, unfinished),
		fmt.Sprintf(`create database %q`, unfinished),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := store.Schema().Migrate(ctx, slog.New(slog.DiscardHandler), postgres.Config{URL: secret.New(withDatabase(cluster, unfinished))}); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf(`alter database %q rename to %q`, unfinished, name))
	return err
}

// withDatabase returns the cluster's URL with another database.
func withDatabase(cluster, name string) string {
	u, err := url.Parse(cluster)
	if err != nil || u.Scheme == "" {
		panic(URLVariable + " is not a postgres:// URL")
	}
	u.Path = "/" + name
	return u.String()
}
