// Package postgrestest gives each test a database of its own on a real Postgres. The test kits of
// the stores are built on it.
package postgrestest

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
func New(tb testing.TB, schema postgres.Schema) *Database {
	tb.Helper()
	migrated, err := Template(Cluster(tb), schema)
	if err != nil {
		tb.Fatalf("create template database: %v", err)
	}
	return create(tb, fmt.Sprintf(` template %q`, migrated))
}

// NewEmpty is New without a schema.
func NewEmpty(tb testing.TB) *Database {
	tb.Helper()
	return create(tb, "")
}

func create(tb testing.TB, from string) *Database {
	tb.Helper()
	cluster, name := Cluster(tb), "test_"+rand.Text()
	if err := admin(cluster, fmt.Sprintf(`create database %q%s`, name, from)); err != nil {
		tb.Fatalf("create test database: %v", err)
	}
	tb.Cleanup(func() { _ = admin(cluster, fmt.Sprintf(`drop database %q with (force)`, name)) })
	return &Database{URL: secret.New(WithDatabase(cluster, name))}
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

// Cluster returns the URL of the cluster, or ends the test.
func Cluster(tb testing.TB) string {
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

// templates has the names of the templates that this process has found or made, by their schema.
var templates sync.Map

// Template returns the name of the migrated database, which is made once per schema and cluster: the
// lock of its first maker ends with its connection. It is renamed when it is migrated, so that no
// test copies an unfinished one.
func Template(cluster string, schema postgres.Schema) (string, error) {
	fingerprint, err := schema.Fingerprint()
	if err != nil {
		return "", err
	}
	once, _ := templates.LoadOrStore(schema.Name, sync.OnceValues(func() (string, error) {
		name := schema.Name + "_template_" + fingerprint[:16]
		return name, build(cluster, name, schema)
	}))
	return once.(func() (string, error))()
}

func build(cluster, name string, schema postgres.Schema) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		return err
	}
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	unfinished := name + "_unfinished"
	if err := admin(cluster, fmt.Sprintf(`drop database if exists %q with (force)`, unfinished), fmt.Sprintf(`create database %q`, unfinished)); err != nil {
		return err
	}
	where := postgres.Config{URL: secret.New(WithDatabase(cluster, unfinished))}
	if err := schema.Migrate(ctx, slog.New(slog.DiscardHandler), where); err != nil {
		return err
	}
	return admin(cluster, fmt.Sprintf(`alter database %q rename to %q`, unfinished, name))
}

// WithDatabase returns the cluster's URL with another database.
func WithDatabase(cluster, name string) string {
	u, err := url.Parse(cluster)
	if err != nil || u.Scheme == "" {
		panic(URLVariable + " is not a postgres:// URL")
	}
	u.Path = "/" + name
	return u.String()
}
