package store

import (
	"context"
	"fmt"
	"strings"
	"time"

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
			WorkflowID: req.Key, RunID: runID, Changelist: req.Changelist, Version: req.Version,
			Stage: letter.Stage, ErrorClass: letter.ErrorClass, Payload: storable(letter),
			FirstFailureAt: letter.FirstFailureAt, LastFailureAt: letter.LastFailureAt,
			Retryable: letter.ErrorClass.Retryable(),
		})
		if postgres.NoRow(err) { // recorded before
			escalated, err = q.IsEscalated(ctx, req.Key, runID)
			return err
		}
		if err != nil {
			return err
		}
		escalated = added.Escalated
		if err := insertPage(ctx, q, added.ID, escalated, letter.ErrorClass); err != nil {
			return err
		}
		if err := q.FailReplayedDeadLetters(ctx, req.Key, runID); err != nil {
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

// A DeadLetterState is the state of a dead letter. It is wire format.
type DeadLetterState string

// The states of a dead letter.
const (
	DeadLetterOpen        DeadLetterState = "open"         // waits for an operator
	DeadLetterReplaying   DeadLetterState = "replaying"    // an operator has asked for its replay, or a replay runs
	DeadLetterFailedAgain DeadLetterState = "failed_again" // its replay left a letter of its own
	DeadLetterResolved    DeadLetterState = "resolved"     // the review succeeded, or an operator closed the letter
)

// A DeadLetter is a dead letter as an operator sees it.
type DeadLetter struct {
	ID         int64             `json:"id"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	State      DeadLetterState   `json:"state"`
	// Escalated: the letter's replay failed for the same reason
	// (processing 8.5).
	Escalated bool `json:"escalated"`
	// Unexplained: a reset of the run has no reason, and no operator has acknowledged it.
	Unexplained bool `json:"unexplained"`
	// Interrupted: a replay was requested, and whether it began is unknown.
	Interrupted bool       `json:"interrupted"`
	RecordedAt  time.Time  `json:"recorded_at"`
	ResolvedAt  *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy  string     `json:"resolved_by,omitempty"`
	Resolution  string     `json:"resolution,omitempty"`
	failure.DeadLetter
}

// A DeadLetterFilter selects dead letters. A zero field selects all.
type DeadLetterFilter struct {
	IDs         []int64
	States      []DeadLetterState
	Changelist  review.Changelist
	Class       failure.Class
	Stage       review.Stage
	OlderThan   time.Duration // since the letter was recorded
	Escalated   bool
	Unexplained bool
}

// DeadLetters returns the dead letters that f selects, oldest first.
func (d *DB) DeadLetters(ctx context.Context, f DeadLetterFilter) ([]DeadLetter, error) {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	rows, err := d.Queries.DeadLetters(ctx, db.DeadLettersParams{
		Ids: append([]int64{}, f.IDs...), States: states, Changelist: int64(f.Changelist), ErrorClass: string(f.Class),
		Stage: string(f.Stage), OlderThan: f.OlderThan, Escalated: f.Escalated, Unexplained: f.Unexplained,
	})
	return convert(rows, err, func(r db.DeadLettersRow) DeadLetter {
		if r.Escalated {
			r.Payload.Hint = failure.EscalatedHint
		}
		return DeadLetter{
			ID: r.ID, WorkflowID: r.WorkflowID, RunID: r.RunID, Changelist: r.Changelist, Version: r.Version,
			State: DeadLetterState(r.State), Escalated: r.Escalated, Unexplained: r.Unexplained, Interrupted: r.Interrupted,
			RecordedAt: r.RecordedAt, ResolvedAt: r.ResolvedAt, ResolvedBy: r.ResolvedBy, Resolution: r.Resolution,
			DeadLetter: r.Payload,
		}
	})
}

// DeadLetter returns one dead letter. The error has class NOT_FOUND if it does not
// exist.
func (d *DB) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	letters, err := d.DeadLetters(ctx, DeadLetterFilter{IDs: []int64{id}})
	return first(letters, err, "dead letter", id)
}

// ResolveDeadLetter closes a letter for an operator. The error has class
// WRITE_CONFLICT if the letter is resolved.
func (d *DB) ResolveDeadLetter(ctx context.Context, id int64, who, reason string) error {
	changed, err := d.changeAudited(ctx, letterObject(id), who, "resolve", map[string]any{"reason": reason}, func(q *db.Queries) (int64, error) {
		return q.ResolveDeadLetter(ctx, who, reason, id)
	})
	if err == nil && !changed {
		return failure.Errorf(failure.WriteConflict, "dead letter %d is resolved or does not exist", id)
	}
	return err
}

// AnnotateDeadLetter adds a note to a letter's trail. The note acknowledges the letter's
// unexplained replays, whose number it returns.
func (d *DB) AnnotateDeadLetter(ctx context.Context, id int64, who, note string) (acknowledged int64, err error) {
	err = d.inTx(ctx, "annotate dead letter", func(q *db.Queries) (err error) {
		if _, err := q.DeadLetterState(ctx, id); err != nil {
			return postgres.Missing("dead letter", id, err)
		}
		if acknowledged, err = q.AcknowledgeReplays(ctx, who, id); err != nil {
			return err
		}
		return auditLetter(ctx, q, who, "annotate", id, map[string]any{"note": note})
	})
	return acknowledged, err
}

// Trail returns the audit log of a letter, oldest first.
func (d *DB) Trail(ctx context.Context, letter int64) ([]AuditEntry, error) {
	return d.AuditOf(ctx, letterObject(letter))
}

func letterObject(letter int64) string { return fmt.Sprintf("dead_letter:%d", letter) }

func auditLetter(ctx context.Context, q *db.Queries, who, action string, letter int64, detail map[string]any) error {
	return audit(ctx, q, letterObject(letter), who, action, detail)
}
