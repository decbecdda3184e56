package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

var v1 = review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}

// version is v1 with another version and its key.
func version(v review.Version) review.Request {
	return review.Request{Changelist: 4711, Version: v, ServerID: "p4", Key: review.DefaultKey("p4", 4711, v)}
}

func open(t *testing.T, db *store.DB, req review.Request, runID string) review.OpenResult {
	t.Helper()
	return must(db.OpenJob(t.Context(), req, runID))(t)
}

// wantState fails unless the job of req is in state want.
func wantState(t *testing.T, db *store.DB, req review.Request, want review.JobState) review.Job {
	t.Helper()
	job := must(db.Job(t.Context(), req.Key))(t)
	if job.State != want {
		t.Fatalf("job is %s, want %s", job.State, want)
	}
	return job
}

// must returns the value of a call, and fails the test if the call failed:
//
//	job := must(db.Job(t.Context(), key))(t)
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

// bookkeeping opens a new database as the role that writes jobs.
func bookkeeping(t *testing.T) (*store.DB, *storetest.Database) {
	t.Helper()
	d := storetest.New(t)
	books := d.Open(t, store.RoleBookkeeping)
	databases.Store(books, d)
	return books, d
}

// databases has the database of each store of bookkeeping, in which finish records outcomes.
var databases sync.Map
