package store_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
)

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		testkit.NoError(t, err)
		return value
	}
}

func wantClass(t *testing.T, err error, want failure.Class) {
	t.Helper()
	if got := failure.ClassOf(err); err == nil || got != want {
		t.Fatalf("error %v has class %s, want %s", err, got, want)
	}
}

// exec runs SQL as the superuser.
func exec(t *testing.T, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// query returns the one value that the statement selects.
func query[T any](t *testing.T, conn *pgx.Conn, statement string, args ...any) T {
	t.Helper()
	rows := must(conn.Query(t.Context(), statement, args...))(t)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// refusal runs the statement, rolls it back and returns the error of Postgres.
func refusal(t *testing.T, conn *pgx.Conn, role, statement string) *pgconn.PgError {
	t.Helper()
	tx := must(conn.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	if role != "" {
		must(tx.Exec(t.Context(), "set local role "+role))(t)
	}
	_, err := tx.Exec(t.Context(), statement)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if err != nil && !ok {
		t.Fatalf("%s: %v", statement, err)
	}
	return refused
}

// edgeOf names a transition.
func edgeOf(from, to rewrite.Status) string { return string(from) + " to " + string(to) }

// drawn returns the transitions of the diagram in rewrite/docs/states.md.
func drawn(t *testing.T) map[string]bool {
	t.Helper()
	page := must(os.ReadFile("../docs/states.md"))(t)
	edges := map[string]bool{}
	for _, edge := range regexp.MustCompile(`(?m)^ *(\w+) --> (\w+)\b`).FindAllStringSubmatch(string(page), -1) {
		edges[edge[1]+" to "+edge[2]] = true
	}
	return edges
}
