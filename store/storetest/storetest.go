// Package storetest gives each test a database of its own on a real Postgres.
//
// A transaction per test, rolled back, does not work: the code under test opens
// transactions itself, in several roles and concurrently. Instead, each test locks one of
// a few clones of a migrated template database. A clone copies 350 files, ten times the
// work of deleting the rows of the test before, so the clones are used again.
package storetest

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/postgres/postgrestest"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
)

// URLVariable names the environment variable with the URL of the scratch cluster.
const URLVariable = postgrestest.URLVariable

// A Database is the database of one test, with the current schema and no rows.
type Database struct {
	URL secret.Value // of the superuser
}

// New returns a clone of the migrated database that no other test has until this one
// ends. Without a cluster it skips the test; in CI it fails the test.
func New(tb testing.TB) *Database {
	tb.Helper()
	cluster := postgrestest.Cluster(tb)
	migrated, err := postgrestest.Template(cluster, store.Schema())
	if err != nil {
		tb.Fatalf("create template database: %v", err)
	}
	name, err := acquire(tb, cluster, migrated)
	if err != nil {
		tb.Fatalf("acquire test database: %v", err)
	}
	return &Database{secret.New(postgrestest.WithDatabase(cluster, name))}
}

// NewEmpty returns a database without the schema, and drops it when the test ends.
func NewEmpty(tb testing.TB) *Database {
	tb.Helper()
	return &Database{postgrestest.NewEmpty(tb).URL}
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
	return (&postgrestest.Database{URL: d.URL}).Conn(tb)
}
