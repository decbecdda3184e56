package store

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// A LetterState is the state of a dead letter. It is wire format.
type LetterState string

// The states of a dead letter.
const (
	LetterOpen        LetterState = "open"         // waits for an operator
	LetterReplaying   LetterState = "replaying"    // an operator has asked for its replay, or a replay runs
	LetterFailedAgain LetterState = "failed_again" // its replay left a letter of its own
	LetterResolved    LetterState = "resolved"     // the review succeeded, or an operator closed the letter
)

// A DeadLetter is a dead letter as an operator sees it.
type DeadLetter struct {
	ID         int64             `json:"id"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	State      LetterState       `json:"state"`
	// Escalated: the letter's replay failed for the same reason
	// (processing 8.5).
	Escalated bool `json:"escalated"`
	// Unexplained: a reset of the run has no replay record.
	Unexplained bool `json:"unexplained"`
	// Interrupted: a replay was requested, and whether it began is unknown.
	Interrupted bool       `json:"interrupted"`
	RecordedAt  time.Time  `json:"recorded_at"`
	ResolvedAt  *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy  string     `json:"resolved_by,omitempty"`
	Resolution  string     `json:"resolution,omitempty"`
	failure.DeadLetter
}

// A LetterFilter selects dead letters. A zero field selects all.
type LetterFilter struct {
	IDs         []int64
	States      []LetterState
	Changelist  review.Changelist
	Class       failure.Class
	Stage       review.Stage
	OlderThan   time.Duration // since the letter was recorded
	Escalated   bool
	Unexplained bool
}

// DeadLetters returns the dead letters that f selects, oldest first.
func (d *DB) DeadLetters(ctx context.Context, f LetterFilter) ([]DeadLetter, error) {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	rows, err := d.q.DeadLetters(ctx, db.DeadLettersParams{
		Ids: append([]int64{}, f.IDs...), States: states, Changelist: int64(f.Changelist), ErrorClass: string(f.Class),
		Stage: string(f.Stage), OlderThan: f.OlderThan, Escalated: f.Escalated, Unexplained: f.Unexplained,
	})
	return postgres.Convert("read dead letters", rows, err, func(r db.DeadLettersRow) DeadLetter {
		return DeadLetter{
			ID: r.ID, WorkflowID: r.WorkflowID, RunID: r.RunID, Changelist: r.ChangelistID, Version: r.ReviewVersion,
			State: LetterState(r.State), Escalated: r.Escalated, Unexplained: r.Unexplained, Interrupted: r.Interrupted,
			RecordedAt: r.RecordedAt, ResolvedAt: r.ResolvedAt, ResolvedBy: r.ResolvedBy, Resolution: r.Resolution,
			DeadLetter: r.Payload,
		}
	})
}

// DeadLetter returns one dead letter. The error has class NOT_FOUND if it does not
// exist.
func (d *DB) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	letters, err := d.DeadLetters(ctx, LetterFilter{IDs: []int64{id}})
	return first(letters, err, "dead letter", id)
}

// ResolveDeadLetter closes a letter for an operator. The error has class
// WRITE_CONFLICT if the letter is resolved.
func (d *DB) ResolveDeadLetter(ctx context.Context, id int64, who, reason string) error {
	changed, err := d.changeAudited(ctx, letterObject(id), who, "resolve", map[string]any{"reason": reason}, func(q *db.Queries) (int64, error) {
		return q.ResolveDeadLetter(ctx, db.ResolveDeadLetterParams{ID: id, Who: who, Reason: reason})
	})
	if err == nil && !changed {
		return failure.Errorf(failure.WriteConflict, "dead letter %d is resolved or does not exist", id)
	}
	return err
}

// AnnotateDeadLetter adds a note to a letter's trail.
func (d *DB) AnnotateDeadLetter(ctx context.Context, id int64, who, note string) error {
	return d.inTx(ctx, "annotate dead letter", func(q *db.Queries) error {
		if _, err := q.DeadLetterState(ctx, id); err != nil {
			return postgres.Missing("dead letter", id, err)
		}
		return auditLetter(ctx, q, who, "annotate", id, map[string]any{"note": note})
	})
}

// Trail returns the audit log of a letter, oldest first.
func (d *DB) Trail(ctx context.Context, letter int64) ([]AuditEntry, error) {
	return d.trail(ctx, letterObject(letter))
}

func letterObject(letter int64) string { return fmt.Sprintf("dead_letter:%d", letter) }

func auditLetter(ctx context.Context, q *db.Queries, who, action string, letter int64, detail map[string]any) error {
	return audit(ctx, q, letterObject(letter), who, action, detail)
}
