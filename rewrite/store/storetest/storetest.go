// Package storetest gives each test a queue of its own on a real Postgres.
package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
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
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/migrations"
)

// URLVariable names the environment variable with the postgres:// URL of a superuser of a
// scratch cluster; `make test` starts one and sets it.
const URLVariable = "CRITICIZER_TEST_DATABASE_URL"

// A Database is the database of one test.
type Database struct {
	URL secret.Value // of the superuser
}

// New returns a database with the schema and no rows, and drops it when the test ends.
// Without a cluster it skips the test; in CI it fails the test.
func New(tb testing.TB) *Database {
	tb.Helper()
	migrated, err := template(clusterURL(tb))
	if err != nil {
		tb.Fatalf("create template database: %v", err)
	}
	return create(tb, ` template "`+migrated+`"`)
}

// NewEmpty is New without the schema.
func NewEmpty(tb testing.TB) *Database {
	tb.Helper()
	return create(tb, "")
}

func create(tb testing.TB, from string) *Database {
	tb.Helper()
	cluster, name := clusterURL(tb), "rewrite_test_"+rand.Text()
	if err := admin(cluster, fmt.Sprintf(`create database %q%s`, name, from)); err != nil {
		tb.Fatalf("create test database: %v", err)
	}
	tb.Cleanup(func() { _ = admin(cluster, fmt.Sprintf(`drop database %q with (force)`, name)) })
	return &Database{URL: secret.New(withDatabase(cluster, name))}
}

// Open opens the queue in role and closes it when the test ends.
func (d *Database) Open(tb testing.TB, role store.Role) *store.Queue {
	tb.Helper()
	q, err := store.Open(tb.Context(), postgres.Config{URL: d.URL}, role)
	if err != nil {
		tb.Fatalf("open test database as %q: %v", role, err)
	}
	tb.Cleanup(q.Close)
	return q
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

// admin runs statements on the cluster's own database.
func admin(cluster string, statements ...string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // outlives the test's context
	defer stop()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

var (
	once     sync.Once
	migrated string
	failed   error
)

// template creates the migrated database, once per schema and cluster, and returns its name.
// The lock of its first maker ends with its connection.
func template(cluster string) (string, error) {
	once.Do(func() {
		text, err := migrations.FS.ReadFile("00001_schema.sql")
		if err != nil {
			failed = err
			return
		}
		migrated = fmt.Sprintf("rewrite_template_%x", sha256.Sum256(text))[:40]
		failed = build(cluster, migrated)
	})
	return migrated, failed
}

func build(cluster, name string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // releases the lock
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		return err
	}
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	making := name + "_new"
	if err := admin(cluster, fmt.Sprintf(`drop database if exists %q with (force)`, making), fmt.Sprintf(`create database %q`, making)); err != nil {
		return err
	}
	if err := store.Schema.Migrate(ctx, slog.New(slog.DiscardHandler), postgres.Config{URL: secret.New(withDatabase(cluster, making))}); err != nil {
		return err
	}
	return admin(cluster, fmt.Sprintf(`alter database %q rename to %q`, making, name))
}

func withDatabase(cluster, name string) string {
	u, err := url.Parse(cluster)
	if err != nil {
		return cluster
	}
	u.Path = "/" + name
	return u.String()
}
