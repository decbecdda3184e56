package store

import (
	"context"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// RecordDeadLetter stores the dead letter of a run and marks its job dead-lettered,
// unless the job has succeeded. Recording a run again changes nothing. A letter is
// escalated if it ends a replay with the error class of the replayed letter and the
// class is not retryable (processing 8.5).
func (d *DB) RecordDeadLetter(ctx context.Context, req review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error) {
	err = d.inTx(ctx, "record dead letter", func(q *db.Queries) error {
		if _, err := q.LockJob(ctx, req.Key); err != nil && !postgres.NoRow(err) {
			return err
		}
		added, err := q.InsertDeadLetter(ctx, db.InsertDeadLetterParams{
			WorkflowID: req.Key, RunID: runID, ChangelistID: req.Changelist, ReviewVersion: req.Version,
			Stage: letter.Stage, ErrorClass: letter.ErrorClass, Payload: storable(letter),
			FirstFailureAt: letter.FirstFailureAt, LastFailureAt: letter.LastFailureAt,
			Retryable: letter.ErrorClass.Retryable(),
		})
		if postgres.NoRow(err) { // recorded before
			escalated, err = q.IsEscalated(ctx, db.IsEscalatedParams{WorkflowID: req.Key, RunID: runID})
			return err
		}
		if err != nil {
			return err
		}
		escalated = added.Escalated
		if err := insertPage(ctx, q, added.ID, escalated, letter.ErrorClass); err != nil {
			return err
		}
		if err := q.FailReplayedDeadLetters(ctx, db.FailReplayedDeadLettersParams{WorkflowID: req.Key, RunID: runID}); err != nil {
			return err
		}
		return q.DeadLetterUnfinishedJob(ctx, req.Key)
	})
	return escalated, err
}

// storable replaces the NUL characters of an error chain: jsonb cannot hold them.
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
