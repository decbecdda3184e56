package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// Rewrites is the complaint_rewrite queue. Who works it opens the database as
// [RoleRewrite], who fills it as [RoleBackend].
type Rewrites struct{ db *DB }

// Rewrites returns the queue.
func (d *DB) Rewrites() Rewrites { return Rewrites{d} }

// Enqueue makes a job of every order, or of none. An order for a request and
// recipient that have a job returns that job (queue 4). sealed has the texts of
// each order. An error names the order by its index, from 0.
func (r Rewrites) Enqueue(ctx context.Context, orders []rewrite.Order, sealed []rewrite.Sealed) ([]rewrite.Receipt, error) {
	receipts := make([]rewrite.Receipt, len(orders))
	err := r.db.inTx(ctx, "enqueue rewrite jobs", func(q *db.Queries) error {
		for i := range orders {
			row, err := enqueue(ctx, q, orders[i], sealed[i])
			if err != nil {
				return &OrderError{i, interpret("enqueue rewrite job", err)}
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

// An OrderError says which of the orders was refused.
type OrderError struct {
	Index int // from 0
	Err   error
}

// Error implements error.
func (e *OrderError) Error() string { return e.Err.Error() }

// Unwrap returns why it was refused.
func (e *OrderError) Unwrap() error { return e.Err }

func enqueue(ctx context.Context, q *db.Queries, order rewrite.Order, sealed rewrite.Sealed) (db.EnqueueRewriteRow, error) {
	job, err := json.Marshal(order)
	if err != nil {
		return db.EnqueueRewriteRow{}, failure.New(failure.InvariantViolated, err)
	}
	texts, err := json.Marshal(sealed)
	if err != nil {
		return db.EnqueueRewriteRow{}, failure.New(failure.InvariantViolated, err)
	}
	return q.EnqueueRewrite(ctx, db.EnqueueRewriteParams{Job: job, Sealed: texts})
}

// Result returns the sealed result of a completed job. The error is of class
// NOT_FOUND if there is none, or none any more.
func (r Rewrites) Result(ctx context.Context, jobID string) (rewrite.SealedText, error) {
	var result rewrite.SealedText
	sealed, err := r.db.q.RewriteResult(ctx, jobID)
	if err != nil {
		return result, interpret("read rewrite result", err)
	}
	if sealed == nil {
		return result, failure.Errorf(failure.NotFound, "rewrite job %s has no result: it is not completed, or its result has expired", jobID)
	}
	if err := json.Unmarshal(sealed, &result); err != nil {
		return result, failure.Errorf(failure.InvariantViolated, "read rewrite result of %s: stored form is not ours", jobID)
	}
	return result, nil
}

// Input returns where a job's message and its recipient's preferences are; the
// latter is empty if there are none.
func (r Rewrites) Input(ctx context.Context, jobID string) (text, preferences string, err error) {
	row, err := r.db.q.RewriteInput(ctx, jobID)
	return row.TextRef, row.PreferencesRef, interpret("read input of rewrite job", err)
}

// Job returns one job.
func (r Rewrites) Job(ctx context.Context, jobID string) (rewrite.Job, error) {
	row, err := r.db.q.RewriteJob(ctx, jobID)
	if errors.Is(err, pgx.ErrNoRows) {
		return rewrite.Job{}, failure.Errorf(failure.NotFound, "there is no rewrite job %s", jobID)
	}
	if err != nil {
		return rewrite.Job{}, interpret("read rewrite job", err)
	}
	return asRewriteJob(row)
}

func asRewriteJobs(rows []db.RewriteJob) ([]rewrite.Job, error) {
	jobs := make([]rewrite.Job, len(rows))
	for i, row := range rows {
		var err error
		if jobs[i], err = asRewriteJob(row); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func asRewriteJob(row db.RewriteJob) (rewrite.Job, error) {
	job := rewrite.Job{
		ID:                            row.JobID,
		RequestID:                     row.RewriteRequestID,
		Task:                          row.Task,
		Surface:                       rewrite.Surface(row.Surface),
		Strength:                      rewrite.Strength(row.RewriteStrength),
		RecipientUserID:               row.RecipientUserID,
		RecipientSnapshotID:           row.RecipientSnapshotID,
		RecipientPreferenceSnapshotID: row.RecipientPreferenceSnapshotID,
		Status:                        row.Status,
		CreatedAt:                     row.CreatedAt.UTC(),
		UpdatedAt:                     row.UpdatedAt.UTC(),
		NotBeforeAt:                   inUTC(row.NotBeforeAt),
		ClaimedAt:                     inUTC(row.ClaimedAt),
		ClaimedBy:                     row.ClaimedBy,
		AttemptCount:                  int(row.AttemptCount),
		MaxAttempts:                   int(row.MaxAttempts),
		LastError:                     row.LastError,
		LastErrorAt:                   inUTC(row.LastErrorAt),
		BatchID:                       row.BatchID,
		BegunAt:                       inUTC(row.BegunAt),
	}
	if err := json.Unmarshal(row.LanguagePair, &job.Languages); err != nil {
		return job, failure.Errorf(failure.InvariantViolated, "read rewrite job %s: its language_pair is malformed", job.ID)
	}
	if row.RoutingDecision == nil {
		return job, nil
	}
	if err := json.Unmarshal(row.RoutingDecision, &job.Routing); err != nil {
		return job, failure.Errorf(failure.InvariantViolated, "read rewrite job %s: its routing_decision is malformed", job.ID)
	}
	return job, nil
}

func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}

// lost is the error of a write that found its claim or lease gone: another
// worker holds it, or an operator has ended it.
func lost(what string, args ...any) error {
	return failure.Errorf(failure.WriteConflict, "%s: the claim was lost", fmt.Sprintf(what, args...))
}
