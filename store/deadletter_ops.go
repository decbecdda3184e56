package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
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
	LetterResolved    LetterState = "resolved"     // the review succeeded, or an operator closed it
)

// A DeadLetter is a dead letter as operators see it.
type DeadLetter struct {
	ID         int64             `json:"id"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	State      LetterState       `json:"state"`
	// Escalated: its replay failed for the same reason as before (criticizer-processing 8.5).
	Escalated bool `json:"escalated"`
	// Unexplained: it was reset by somebody who recorded no evidence.
	Unexplained bool `json:"unexplained"`
	// Interrupted: a replay was asked for, and it is not known that it began.
	Interrupted bool       `json:"interrupted"`
	RecordedAt  time.Time  `json:"recorded_at"`
	ResolvedAt  *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy  string     `json:"resolved_by,omitempty"`
	Resolution  string     `json:"resolution,omitempty"`
	failure.DeadLetter
}

// A LetterFilter chooses dead letters. A zero field chooses all.
type LetterFilter struct {
	IDs         []int64
	States      []LetterState
	Changelist  review.Changelist
	Class       failure.Class
	Stage       review.Stage
	OlderThan   time.Duration // since it was recorded
	Escalated   bool
	Unexplained bool
}

// DeadLetters returns the dead letters that f chooses, oldest first.
func (d *DB) DeadLetters(ctx context.Context, f LetterFilter) ([]DeadLetter, error) {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	rows, err := d.q.DeadLetters(ctx, db.DeadLettersParams{
		Ids: append([]int64{}, f.IDs...), States: states, Changelist: int64(f.Changelist), ErrorClass: string(f.Class),
		Stage: string(f.Stage), OlderThan: f.OlderThan, Escalated: f.Escalated, Unexplained: f.Unexplained,
	})
	if err != nil {
		return nil, interpret("read dead letters", err)
	}
	letters := make([]DeadLetter, len(rows))
	for i, row := range rows {
		if letters[i], err = asDeadLetter(row); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// DeadLetter returns one dead letter; the error has class NOT_FOUND if there is
// none of that id.
func (d *DB) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	letters, err := d.DeadLetters(ctx, LetterFilter{IDs: []int64{id}})
	if err == nil && len(letters) == 0 {
		err = noLetter(id)
	}
	if err != nil {
		return DeadLetter{}, err
	}
	return letters[0], nil
}

func noLetter(id int64) error {
	return failure.Errorf(failure.NotFound, "dead letter %d does not exist", id)
}

func asDeadLetter(row db.DeadLettersRow) (DeadLetter, error) {
	l := DeadLetter{
		ID: row.ID, WorkflowID: row.WorkflowID, RunID: row.RunID, Changelist: row.ChangelistID, Version: row.ReviewVersion,
		State: LetterState(row.State), Escalated: row.Escalated, Unexplained: row.Unexplained, Interrupted: row.Interrupted,
		RecordedAt: row.RecordedAt, ResolvedAt: row.ResolvedAt, ResolvedBy: row.ResolvedBy, Resolution: row.Resolution,
	}
	if err := json.Unmarshal(row.Payload, &l.DeadLetter); err != nil {
		return l, failure.Errorf(failure.InvariantViolated, "read payload of dead letter %d: %w", row.ID, err)
	}
	return l, nil
}

// A Replay is one replay of a dead letter, by whom and why.
type Replay struct {
	DeadLetterID int64     `json:"dead_letter_id"`
	NewRunID     string    `json:"new_run_id"`
	Who          string    `json:"who"`
	Reason       string    `json:"reason"`
	Explained    bool      `json:"explained"` // its evidence was recorded before it began
	Full         bool      `json:"full"`      // restarted from the first stage
	StartedAt    time.Time `json:"started_at"`
}

// Replays returns the replays of the letters, in the order they began.
func (d *DB) Replays(ctx context.Context, letters ...int64) ([]Replay, error) {
	rows, err := d.q.ReplaysOf(ctx, append([]int64{}, letters...))
	replays := make([]Replay, len(rows))
	for i, r := range rows {
		replays[i] = Replay{
			DeadLetterID: r.DeadLetterID, NewRunID: r.NewRunID, Who: r.Who, Reason: r.Reason,
			Explained: r.Explained, Full: r.FullRestart, StartedAt: r.StartedAt,
		}
	}
	return replays, interpret("read replays", err)
}

// A PageState says whether the page about a dead letter has got through.
type PageState struct {
	Reason   failure.PageReason `json:"reason"`
	Attempts int                `json:"attempts"`
	SentAt   *time.Time         `json:"sent_at,omitempty"`
}

// PageOf returns the page about a letter; nil if there is none.
func (d *DB) PageOf(ctx context.Context, letter int64) (*PageState, error) {
	row, err := d.q.PageOf(ctx, letter)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, interpret("read page", err)
	}
	return &PageState{Reason: failure.PageReason(row.Reason), Attempts: int(row.Attempts), SentAt: row.SentAt}, nil
}

// ResolveDeadLetter closes a letter by hand. One that is resolved stays as it
// is; the error then has class WRITE_CONFLICT.
func (d *DB) ResolveDeadLetter(ctx context.Context, id int64, who, evidence string) error {
	return d.inTx(ctx, "resolve dead letter", func(q *db.Queries) error {
		changed, err := q.ResolveDeadLetter(ctx, db.ResolveDeadLetterParams{ID: id, Who: who, Evidence: evidence})
		if err != nil {
			return err
		}
		if changed == 0 {
			return failure.Errorf(failure.WriteConflict, "dead letter %d is resolved already, or does not exist", id)
		}
		return auditLetter(ctx, q, who, "resolve", id, map[string]any{"evidence": evidence})
	})
}

// AnnotateDeadLetter adds a note to a letter's trail.
func (d *DB) AnnotateDeadLetter(ctx context.Context, id int64, who, note string) error {
	return d.inTx(ctx, "annotate dead letter", func(q *db.Queries) error {
		if _, err := q.DeadLetterState(ctx, id); errors.Is(err, pgx.ErrNoRows) {
			return noLetter(id)
		} else if err != nil {
			return err
		}
		return auditLetter(ctx, q, who, "annotate", id, map[string]any{"note": note})
	})
}

// Trail returns what operators did about a letter, oldest first.
func (d *DB) Trail(ctx context.Context, letter int64) ([]AuditEntry, error) {
	return d.trail(ctx, letterObject(letter))
}

func letterObject(letter int64) string { return fmt.Sprintf("dead_letter:%d", letter) }

func auditLetter(ctx context.Context, q *db.Queries, who, action string, letter int64, detail map[string]any) error {
	return audit(ctx, q, letterObject(letter), who, action, detail)
}
