// Package storetest gives each test a queue of its own on a real Postgres.
package storetest

import (
	"testing"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/postgres/postgrestest"
	"github.com/criticizer/criticizer/rewrite/store"
)

// A Database is the database of one test.
type Database struct{ *postgrestest.Database }

// New returns a database with the schema and no rows; see [postgrestest.New].
func New(tb testing.TB) *Database {
	tb.Helper()
	return &Database{postgrestest.New(tb, store.Schema)}
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
