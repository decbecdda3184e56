// Package store persists data that must outlive Temporal's retention: jobs, the
// outbox, dead letters, the audit log and the encrypted artifacts. It needs Postgres
// 15 or newer.
//
// The schema is in store/migrations, and sqlc compiles the queries of store/queries
// into the methods of store/db, which a [DB] has: what is one statement is called as such.
// The files of this package have what takes a transaction, or returns the types of package
// review. Invariants are CHECK constraints of the schema. An update states
// the state that it leaves, so that of two writers one changes nothing. The database
// sets all times: the clocks of the hosts may differ.
//
// Each file holds one aggregate. Read this file first, then jobs.go, where [DB.OpenJob]
// decides whether a review runs, deliveries.go (the outbox and its reconciliation),
// deadletters.go, pages.go and replays.go. artifacts.go, costs.go, findings.go and shelves.go hold what
// one stage writes; reviews.go and delivery_repair.go what operators see and change.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/store/db"
)

// A Role is a group role of the database: the rights of one stage (security 9.4.3).
// A login must be a member of the roles it opens.
type Role string

// The roles. The empty role is the login itself.
const (
	RoleFetch       Role = "criticizer_fetch"       // writes raw artifacts and recipients
	RoleRedact      Role = "criticizer_redact"      // reads raw, writes redacted artifacts
	RoleLLM         Role = "criticizer_llm"         // reads redacted, writes report artifacts
	RoleNotify      Role = "criticizer_notify"      // reads reports and recipients, writes the outbox
	RoleBookkeeping Role = "criticizer_bookkeeping" // writes jobs, dead letters and replays
	RoleOperator    Role = "criticizer_operator"    // reads all but contents, repairs states
	RoleRetention   Role = "criticizer_retention"   // deletes expired artifacts and recipients
	RoleReader      Role = "criticizer_reader"      // reads one artifact for a person who gives a reason
)

// A DB is a pool of connections that act as one role. Its methods may be called
// concurrently; their errors are [failure.Error]s.
type DB struct {
	*db.Queries
	lg   *slog.Logger
	pool *pgxpool.Pool
	role Role
}

// Open connects to the database as role, as [postgres.Open] does.
func Open(ctx context.Context, lg *slog.Logger, where postgres.Config, role Role) (*DB, error) {
	pool, err := postgres.Open(ctx, where, string(role))
	if err != nil {
		return nil, err
	}
	lg.DebugContext(ctx, "database opened", "role", string(role), "connections", pool.Config().MaxConns)
	return &DB{db.New(postgres.Classified(pool)), lg, pool, role}, nil
}

// Close waits until no connection is in use and closes all.
func (d *DB) Close() { d.pool.Close() }

// OldestPostgres is the oldest supported major version of Postgres.
const OldestPostgres = 15

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the schema of the reviewer. Until the first release it has one file, which is
// edited in place; a released file never changes, and every later change is a new file.
func Schema() postgres.Schema {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is constant
	}
	return postgres.Schema{Name: "criticizer", Files: files, Command: "criticizer migrate"}
}

// CheckSchema returns an error of class CONFIG_INVALID unless the database has the schema
// of this build.
func (d *DB) CheckSchema(ctx context.Context) error { return Schema().Check(ctx, d.pool) }

// inTx runs fn in one transaction; op names the operation in errors.
func (d *DB) inTx(ctx context.Context, op string, fn func(q *db.Queries) error) error {
	return postgres.Interpret(op, pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return fn(db.New(postgres.Classified(tx))) }))
}

// convert returns the rows of a query, which may have failed with err, as values of another type.
func convert[Row, T any](rows []Row, err error, as func(Row) T) ([]T, error) {
	if err != nil {
		return nil, err
	}
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = as(row)
	}
	return values, nil
}

// first returns the first of the values that a query for an ID returned.
func first[T any](values []T, err error, what string, id int64) (value T, _ error) {
	if err == nil && len(values) == 0 {
		err = postgres.Missing(what, id, pgx.ErrNoRows)
	}
	if err != nil {
		return value, err
	}
	return values[0], nil
}

// encoded returns the JSON form of a value that always has one: a struct or map of texts,
// numbers and times of years with four digits.
func encoded(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}

// An AuditEntry is one line of the audit log.
type AuditEntry = db.AuditOfRow

// changeAudited changes one row, the object, and records that in the log. It records nothing
// if change returns that it has changed no row.
func (d *DB) changeAudited(ctx context.Context, object, claimed, action string, detail map[string]any, change func(*db.Queries) (int64, error)) (changed bool, err error) {
	err = d.inTx(ctx, action+" "+object, func(q *db.Queries) error {
		n, err := change(q)
		if changed = n == 1; err != nil || !changed {
			return err
		}
		return audit(ctx, q, object, claimed, action, detail)
	})
	return changed && err == nil, err
}

// oneOrNone returns the number of rows that a statement changed, from the error of
// reading the row that it returns.
func oneOrNone(err error) (int64, error) {
	if postgres.NoRow(err) {
		return 0, nil
	}
	return 1, err
}

// audit appends an action on an object to the log. claimed is the name of a person who
// shares the login with others, or empty.
func audit(ctx context.Context, q *db.Queries, object, claimed, action string, detail map[string]any) error {
	return q.AppendAudit(ctx, db.AppendAuditParams{Claimed: claimed, Action: action, Object: object, Detail: encoded(detail)})
}
