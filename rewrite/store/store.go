// Package store is the queue in Postgres: jobs, batches, runs and encrypted texts.
//
// The schema complaint_rewrite is in store/migrations, and sqlc compiles the queries of
// store/queries into store/db. Every write is guarded by the claim, the lease or the batch
// that gives the right to it; a write whose right was lost changes nothing. The database
// sets all times.
//
// Read [Queue.Enqueue] first, then claims.go, batches.go, runs.go and texts.go. What only
// operators call is in repair.go.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
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
	pool *pgxpool.Pool
	q    *db.Queries
}

// Open connects to the database as role; see [postgres.Open].
func Open(ctx context.Context, where postgres.Config, role Role) (*Queue, error) {
	pool, err := postgres.Open(ctx, where, string(role))
	if err != nil {
		return nil, err
	}
	return &Queue{pool, db.New(pool)}, nil
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
	return postgres.Interpret(op, pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error { return fn(db.New(tx)) }))
}

// encoded returns the JSON form of a value that always has one.
func encoded(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}

// Enqueue creates a job for every order, or for none. An order for a request and
// recipient that have a job returns that job (rewrite 4). sealed has the texts of each
// order. A rejected order is an [OrderError]. Enqueue validates the orders; the schema holds
// only what protects the queue itself.
func (q *Queue) Enqueue(ctx context.Context, orders []rewrite.Order, sealed []rewrite.Sealed) ([]rewrite.Receipt, error) {
	for serial := false; ; serial = true {
		receipts, err := q.enqueueAll(ctx, orders, sealed, serial)
		if f, ok := errors.AsType[*failure.Error](err); !ok || f.Upstream != "40P01" {
			return receipts, err
		}
	}
}

// enqueueAll enqueues in the order of the orders, because jobs are claimed in the order of
// their creation. Calls that enqueue the same new requests in different orders may deadlock:
// Postgres ends one of them. The calls that repeat are serial, or they would deadlock with
// each other again.
func (q *Queue) enqueueAll(ctx context.Context, orders []rewrite.Order, sealed []rewrite.Sealed, serial bool) ([]rewrite.Receipt, error) {
	receipts := make([]rewrite.Receipt, len(orders))
	for i, order := range orders {
		if err := order.Validate(); err != nil {
			return nil, &OrderError{i, failure.New(failure.InputInvalid, err)}
		}
	}
	err := q.inTx(ctx, "enqueue jobs", func(tx *db.Queries) error {
		if serial {
			if err := tx.LockEnqueue(ctx); err != nil {
				return err
			}
		}
		for i, order := range orders {
			row, err := tx.Enqueue(ctx, encoded(rewrite.SealedOrder{Order: order, Sealed: sealed[i]}))
			if err != nil {
				return &OrderError{i, postgres.Interpret("enqueue job", err)}
			}
			receipts[i] = rewrite.Receipt{JobID: row.JobID, Status: rewrite.Status(row.Status), Created: row.Created}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// An OrderError is the error of one of several orders.
type OrderError struct {
	Index int // from 0
	Err   error
}

// Error implements error.
func (e *OrderError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *OrderError) Unwrap() error { return e.Err }

// Result returns the sealed result of a completed job. The error has class NOT_FOUND
// if the job is not completed or its result has expired.
func (q *Queue) Result(ctx context.Context, jobID string) (rewrite.SealedText, error) {
	var result rewrite.SealedText
	sealed, err := q.q.Result(ctx, jobID)
	if err != nil {
		return result, postgres.Interpret("read rewrite result", err)
	}
	if sealed == nil {
		return result, failure.Errorf(failure.NotFound, "job %s has no result: it is not completed, or its result has expired", jobID)
	}
	if err := json.Unmarshal(sealed, &result); err != nil {
		return result, failure.Errorf(failure.InvariantViolated, "read rewrite result of %s: its stored form is malformed", jobID)
	}
	return result, nil
}

// Input returns the references of a job's message and of its recipient's preferences;
// the latter is empty if there are none.
func (q *Queue) Input(ctx context.Context, jobID string) (text, preferences string, err error) {
	row, err := q.q.Input(ctx, jobID)
	return row.TextRef, row.PreferencesRef, postgres.Interpret("read input of job", err)
}

// Newest returns the newest jobs.
func (q *Queue) Newest(ctx context.Context, limit int) ([]rewrite.Job, error) {
	return q.Find(ctx, Filter{Limit: limit})
}

// Job returns one job.
func (q *Queue) Job(ctx context.Context, jobID string) (rewrite.Job, error) {
	row, err := q.q.Job(ctx, jobID)
	return asJob(row), postgres.Missing("job", jobID, err)
}

// asJob never fails: a field that cannot be decoded makes one job unreadable and
// not the rows beside it.
func asJob(row db.Job) rewrite.Job {
	job := rewrite.Job{
		ID:                            row.JobID,
		RequestID:                     row.RewriteRequestID,
		Task:                          row.Task,
		Surface:                       row.Surface,
		Strength:                      row.RewriteStrength,
		RecipientUserID:               row.RecipientUserID,
		RecipientSnapshotID:           row.RecipientSnapshotID,
		RecipientPreferenceSnapshotID: row.RecipientPreferenceSnapshotID,
		Status:                        row.Status,
		CreatedAt:                     row.CreatedAt,
		UpdatedAt:                     row.UpdatedAt,
		ClaimedAt:                     row.ClaimedAt,
		ClaimedBy:                     row.ClaimedBy,
		AttemptCount:                  row.AttemptCount,
		MaxAttempts:                   row.MaxAttempts,
		LastError:                     row.LastError,
		LastErrorAt:                   row.LastErrorAt,
		BatchID:                       row.BatchID,
		BegunAt:                       row.BegunAt,
		BatchPart:                     postgres.OrZero(row.BatchPart),
		Rounds:                        row.CapacityRounds,
	}
	if row.NotBeforeAt.Valid {
		job.NotBeforeAt = &row.NotBeforeAt.Time
	}
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"language_pair", json.Unmarshal(row.LanguagePair, &job.Languages) == nil},
		{"routing_decision", row.RoutingDecision == nil || json.Unmarshal(row.RoutingDecision, &job.Routing) == nil},
		{"not_before_at", row.NotBeforeAt.InfinityModifier == pgtype.Finite},
	} {
		if !field.ok {
			job.Unreadable = field.name
		}
	}
	return job
}

// lost is the error of a write whose claim or lease has ended: another worker has
// taken the job over, or an operator has ended it.
func lost(what string, args ...any) error {
	return failure.Errorf(failure.WriteConflict, "%s: the claim was lost", fmt.Sprintf(what, args...))
}
