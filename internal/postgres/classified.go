package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A DB runs statements: a pool or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Classified returns a DB for the queries of sqlc, whose errors are those of [Interpret]: the
// operation is the name of the query. A query without its row fails with class NOT_FOUND.
func Classified(db DB) DB { return classified{db} }

type classified struct{ db DB }

func (c classified) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := c.db.Exec(ctx, sql, args...)
	return tag, Interpret(nameOf(sql), err)
}

func (c classified) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := c.db.Query(ctx, sql, args...)
	return classifiedRows{rows, nameOf(sql)}, Interpret(nameOf(sql), err)
}

func (c classified) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return classifiedRow{c.db.QueryRow(ctx, sql, args...), nameOf(sql)}
}

type classifiedRows struct {
	pgx.Rows
	query string
}

func (r classifiedRows) Scan(into ...any) error { return Interpret(r.query, r.Rows.Scan(into...)) }
func (r classifiedRows) Err() error             { return Interpret(r.query, r.Rows.Err()) }

type classifiedRow struct {
	pgx.Row
	query string
}

func (r classifiedRow) Scan(into ...any) error { return Interpret(r.query, r.Row.Scan(into...)) }

// nameOf returns the name that sqlc gives a query: "-- name: PendingJobs :one" is its first line.
func nameOf(sql string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- name: "), " ")
	return "query " + name
}
