package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// RecordDeadLetter stores the letter of one run and marks its job
// dead-lettered, unless the job has succeeded. Recording a run again changes
// nothing. A letter that ends a replay with the error class it began with, one
// that no retry cures, is escalated (criticizer-processing 8.5).
func (d *DB) RecordDeadLetter(ctx context.Context, req review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error) {
	payload, err := json.Marshal(storable(letter))
	if err != nil {
		return false, failure.New(failure.InvariantViolated, err)
	}
	err = d.inTx(ctx, "record dead letter", func(q *db.Queries) error {
		if _, err := q.LockJob(ctx, req.Key); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		added, err := q.InsertDeadLetter(ctx, db.InsertDeadLetterParams{
			WorkflowID: req.Key, RunID: runID, ChangelistID: req.Changelist, ReviewVersion: req.Version,
			Stage: letter.Stage, ErrorClass: string(letter.ErrorClass), Payload: payload,
			FirstFailureAt: letter.FirstFailureAt, LastFailureAt: letter.LastFailureAt,
			Retryable: letter.ErrorClass.Retryable(),
		})
		if errors.Is(err, pgx.ErrNoRows) { // recorded before
			escalated, err = q.IsEscalated(ctx, db.IsEscalatedParams{WorkflowID: req.Key, RunID: runID})
			return err
		}
		if err != nil {
			return err
		}
		escalated = added.Escalated
		return afterDeath(ctx, q, req.Key, runID, page(added.ID, escalated, letter.ErrorClass))
	})
	return escalated, err
}

// afterDeath is what a new dead letter changes beside it.
func afterDeath(ctx context.Context, q *db.Queries, workflowID, runID string, page *db.InsertPageParams) error {
	if err := insertPage(ctx, q, page); err != nil {
		return err
	}
	if err := q.FailReplayedDeadLetters(ctx, db.FailReplayedDeadLettersParams{WorkflowID: workflowID, RunID: runID}); err != nil {
		return err
	}
	return q.DeadLetterUnfinishedJob(ctx, workflowID)
}

// insertPage calls somebody; about what every review meets, once.
func insertPage(ctx context.Context, q *db.Queries, page *db.InsertPageParams) error {
	switch {
	case page == nil:
		return nil
	case page.Reason == string(failure.PageDenied):
		return q.InsertPageOfOne(ctx, db.InsertPageOfOneParams(*page))
	}
	return q.InsertPage(ctx, *page)
}

// page says why somebody is paged about a letter; nil if nobody is. Escalation
// and bugs do (criticizer-processing 8.1, 8.5), and what stops everyone until a
// person has renewed a credential or restored the credit.
func page(letter int64, escalated bool, class failure.Class) *db.InsertPageParams {
	switch {
	case escalated:
		return &db.InsertPageParams{DeadLetterID: letter, Reason: string(failure.PageEscalated)}
	case class.Describe().Category == failure.CategoryConfigOrBug:
		return &db.InsertPageParams{DeadLetterID: letter, Reason: string(failure.PageBug)}
	case class == failure.AuthDenied, class == failure.QuotaExhausted:
		return &db.InsertPageParams{DeadLetterID: letter, Reason: string(failure.PageDenied)}
	}
	return nil
}

// storable replaces the one character that jsonb cannot hold. An error chain
// may quote anything, and a dead letter must not be lost for it.
func storable(letter failure.DeadLetter) failure.DeadLetter {
	clean := func(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
	letter.LastStack = clean(letter.LastStack)
	values := make(map[string]string, len(letter.SanitizedContext))
	for k, v := range letter.SanitizedContext {
		values[clean(k)] = clean(v)
	}
	letter.SanitizedContext = values
	return letter
}

// BeginReplay records that run r.NewRunID replays the dead letter of run
// r.DeadRunID, by whom and why, and reopens the job. The replay is explained if
// an operator's request gave the reason as its evidence. A job that has succeeded
// meanwhile is returned as it is: there is nothing left to replay
// (criticizer-processing 8.5).
func (d *DB) BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error) {
	var job db.Job
	err := d.inTx(ctx, "begin replay", func(q *db.Queries) (err error) {
		if job, err = q.LockJob(ctx, req.Key); err != nil {
			return err
		}
		letter, err := q.DeadLetterID(ctx, db.DeadLetterIDParams{WorkflowID: req.Key, RunID: r.DeadRunID})
		if err != nil {
			return err
		}
		if err := traceReplay(ctx, q, req.Key, letter, r); err != nil {
			return err
		}
		if job.State == review.JobSucceeded {
			return q.ResolveDeadLetters(ctx, req.Key)
		}
		if err := q.MarkReplaying(ctx, letter); err != nil {
			return err
		}
		job, err = q.ReopenUnfinishedJob(ctx, db.ReopenUnfinishedJobParams{IdempotencyKey: req.Key, RunID: r.NewRunID})
		return err
	})
	return asJob(job), err
}

// traceReplay records a replay once, however often its activity is retried.
func traceReplay(ctx context.Context, q *db.Queries, workflowID string, letter int64, r review.Replay) error {
	added, err := q.InsertReplay(ctx, db.InsertReplayParams{
		DeadLetterID: letter, NewRunID: r.NewRunID, Who: r.Identity, Reason: r.Reason,
	})
	if err != nil || added == 0 {
		return err
	}
	return audit(ctx, q, "workflow:"+workflowID, r.Identity, "replay", map[string]any{
		"dead_run": r.DeadRunID, "new_run": r.NewRunID, "reason": r.Reason,
	})
}
