// Package store is the queue in Postgres: jobs, batches, runs and encrypted texts.
//
// The schema complaint_rewrite is in store/migrations, and sqlc compiles the queries of
// store/queries into the methods of store/db, which a [Queue] has: what is one statement is
// called as such. The files of this package have what takes a transaction or returns [rewrite.Job]s.
// Every write is guarded by the claim, the lease or the batch that gives the right to it; a
// write whose right was lost changes nothing. The database sets all times.
//
// Read the queries first, jobs.sql before batches.sql, then [Queue.Enqueue], claims.go, batches.go
// and texts.go. What only operators call is in repair.go.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/rewrite/store/migrations"
)

// A Role is a group role of the database: the rights of one party (security 9.4.3). A login
// must be a member of the roles that it opens.
type Role string

// The roles. The empty role is the login itself.
const (
	RoleWorker   Role = "complaint_rewrite_worker"   // executes jobs
	RoleBackend  Role = "complaint_rewrite_backend"  // enqueues jobs, reads their states and results
	RoleFrontend Role = "complaint_rewrite_frontend" // reads the states of jobs
	RoleOperator Role = "complaint_rewrite_operator" // reads all but texts, repairs states
)

// Schema is the schema of the queue.
var Schema = postgres.Schema{Name: "complaint_rewrite", Files: migrations.FS, Command: "complaint-rewrite migrate"}

// A Queue is the queue, opened in one role. Its methods may be called concurrently; their
// errors are [failure.Error]s.
type Queue struct {
	*db.Queries
	pool *pgxpool.Pool
}

// Open connects to the database as role; see [postgres.Open].
func Open(ctx context.Context, where postgres.Config, role Role) (*Queue, error) {
	pool, err := postgres.Open(ctx, where, string(role))
	if err != nil {
		return nil, err
	}
	return &Queue{db.New(postgres.Classified(pool)), pool}, nil
}

// Close waits until no connection is in use and closes all.
func (q *Queue) Close() { q.pool.Close() }

// CheckSchema returns an error of class CONFIG_INVALID unless the database has the schema
// of this build.
func (q *Queue) CheckSchema(ctx context.Context) error {
	return Schema.Check(ctx, q.pool)
}

// inTx runs fn in one transaction; op names the operation in errors.
func (q *Queue) inTx(ctx context.Context, op string, fn func(tx *db.Queries) error) error {
	return postgres.Interpret(op, pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error { return fn(db.New(postgres.Classified(tx))) }))
}

// encoded returns the JSON form of a value that always has one.
func encoded(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}

// Enqueue creates a job for every order, or for none. An order for a request and recipient that
// have a job returns that job (rewrite 4).
//
// Calls are serial: jobs are claimed in the order of their creation, and two calls with the same
// new requests in different orders would deadlock.
func (q *Queue) Enqueue(ctx context.Context, orders []rewrite.SealedOrder) (receipts []db.EnqueueRow, err error) {
	err = q.inTx(ctx, "enqueue jobs", func(tx *db.Queries) error {
		if err := tx.LockEnqueue(ctx); err != nil {
			return err
		}
		for _, order := range orders {
			receipt, err := tx.Enqueue(ctx, encoded(order))
			if err != nil {
				return fmt.Errorf("line %d: %w", order.Line, err)
			}
			receipts = append(receipts, receipt)
		}
		return nil
	})
	return receipts, err
}

// Result returns the sealed result of a completed job. The error has class NOT_FOUND
// if the job is not completed or its result has expired.
func (q *Queue) Result(ctx context.Context, jobID string) (result rewrite.SealedText, err error) {
	sealed, err := q.Queries.Result(ctx, jobID)
	switch {
	case err != nil:
		return result, err
	case sealed == nil:
		return result, failure.Errorf(failure.NotFound, "job %s has no result: it is not completed, or its result has expired", jobID)
	case json.Unmarshal(sealed, &result) != nil:
		return result, failure.Errorf(failure.InvariantViolated, "read rewrite result of %s: its stored form is malformed", jobID)
	}
	return result, nil
}

// Job returns one job.
func (q *Queue) Job(ctx context.Context, jobID string) (rewrite.Job, error) {
	row, err := q.Queries.Job(ctx, jobID)
	if failure.ClassOf(err) == failure.NotFound {
		err = failure.Errorf(failure.NotFound, "job %s does not exist", jobID)
	}
	return asJob(row), err
}

// asJob decodes a row, whose columns have the names of the fields of [rewrite.Job]. A field that cannot
// be decoded makes one job unreadable and not the rows beside it.
func asJob(row []byte) (job rewrite.Job) {
	err := json.Unmarshal(row, &job)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		job.Unreadable, _, _ = strings.Cut(strings.TrimPrefix(wrong.Field, "Order."), ".")
	} else if err != nil { // a time, and the database sets all others
		job.Unreadable = "not_before_at"
	}
	return job
}

func asJobs(rows [][]byte) []rewrite.Job {
	jobs := make([]rewrite.Job, len(rows))
	for i, row := range rows {
		jobs[i] = asJob(row)
	}
	return jobs
}
