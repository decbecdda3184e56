package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// Rewrites is the complaint_rewrite queue. Its worker opens the database as
// [RoleRewrite], a backend as [RoleBackend].
type Rewrites struct{ db *DB }

// Rewrites returns the queue.
func (d *DB) Rewrites() Rewrites { return Rewrites{d} }

// Enqueue creates a job for every order, or for none. An order for a request and
// recipient that have a job returns that job (rewrite 4). sealed has the texts of each
// order. A rejected order is an [OrderError].
func (r Rewrites) Enqueue(ctx context.Context, orders []rewrite.Order, sealed []rewrite.Sealed) ([]rewrite.Receipt, error) {
	for serial := false; ; serial = true {
		receipts, err := r.enqueueAll(ctx, orders, sealed, serial)
		if f, ok := errors.AsType[*failure.Error](err); !ok || f.Upstream != "40P01" {
			return receipts, err
		}
	}
}

// enqueueAll enqueues in the order of the orders, because jobs are claimed in the order of
// their creation. Calls that enqueue the same new requests in different orders may deadlock:
// Postgres ends one of them. The calls that repeat are serial, or they would deadlock with
// each other again.
func (r Rewrites) enqueueAll(ctx context.Context, orders []rewrite.Order, sealed []rewrite.Sealed, serial bool) ([]rewrite.Receipt, error) {
	receipts := make([]rewrite.Receipt, len(orders))
	err := r.db.inTx(ctx, "enqueue rewrite jobs", func(q *db.Queries) error {
		if serial {
			if err := q.LockRewriteEnqueue(ctx); err != nil {
				return err
			}
		}
		for i, order := range orders {
			row, err := q.EnqueueRewrite(ctx, db.EnqueueRewriteParams{Job: encoded(order), Sealed: encoded(sealed[i])})
			if err != nil {
				return &OrderError{i, postgres.Interpret("enqueue rewrite job", err)}
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

// DeleteExpired deletes the expired texts and returns their number (security 9.4.5).
func (r Rewrites) DeleteExpired(ctx context.Context) (int, error) {
	return r.db.DeleteExpiredArtifacts(ctx, review.NamespaceRewrite)
}

// Result returns the sealed result of a completed job. The error has class NOT_FOUND
// if the job is not completed or its result has expired.
func (r Rewrites) Result(ctx context.Context, jobID string) (rewrite.SealedText, error) {
	var result rewrite.SealedText
	sealed, err := r.db.q.RewriteResult(ctx, jobID)
	if err != nil {
		return result, postgres.Interpret("read rewrite result", err)
	}
	if sealed == nil {
		return result, failure.Errorf(failure.NotFound, "rewrite job %s has no result: it is not completed, or its result has expired", jobID)
	}
	if err := json.Unmarshal(sealed, &result); err != nil {
		return result, failure.Errorf(failure.InvariantViolated, "read rewrite result of %s: its stored form is malformed", jobID)
	}
	return result, nil
}

// Input returns the references of a job's message and of its recipient's preferences;
// the latter is empty if there are none.
func (r Rewrites) Input(ctx context.Context, jobID string) (text, preferences string, err error) {
	row, err := r.db.q.RewriteInput(ctx, jobID)
	return row.TextRef, row.PreferencesRef, postgres.Interpret("read input of rewrite job", err)
}

// Newest returns the newest jobs.
func (r Rewrites) Newest(ctx context.Context, limit int) ([]rewrite.Job, error) {
	return r.Find(ctx, RewriteFilter{Limit: limit})
}

// Job returns one job.
func (r Rewrites) Job(ctx context.Context, jobID string) (rewrite.Job, error) {
	row, err := r.db.q.RewriteJob(ctx, jobID)
	return asRewriteJob(row), postgres.Missing("rewrite job", jobID, err)
}

// asRewriteJob never fails: a field that cannot be decoded makes one job unreadable and
// not the rows beside it.
func asRewriteJob(row db.RewriteJob) rewrite.Job {
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
