package store

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// BeginReplay makes the job one of run r.NewRunID, which Temporal made from the run
// r.DeadRunID by a reset: it records the caller and the reason, and reopens the job and its
// unresolved dead letters. r.DeadRunID may be empty. A job that has
// succeeded or was forgotten is returned unchanged, and one whose changelist has a newer review
// that has succeeded is canceled: nothing is left to replay (processing 8.5). A refused request has dead letters and no job:
// the returned one has only a state.
func (d *DB) BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error) {
	var job db.Job
	err := d.inTx(ctx, "begin replay", func(q *db.Queries) (err error) {
		job, err = q.LockJob(ctx, req.Key)
		if postgres.NoRow(err) {
			job.State = review.JobInProgress
			return recordReplay(ctx, q, req.Key, r)
		}
		if err != nil || job.RunID == r.NewRunID {
			return err
		}
		if err := recordReplay(ctx, q, req.Key, r); err != nil {
			return err
		}
		replaced, err := q.HasNewerReview(ctx, req.Key)
		if err != nil {
			return err
		}
		switch {
		case job.ForgottenAt != nil:
			return nil
		case job.State == review.JobSucceeded:
			return q.ResolveDeadLetters(ctx, req.Key)
		case replaced:
			if job, err = q.CancelReplacedJob(ctx, r.NewRunID, req.Key); err != nil {
				return err
			}
			return q.ResolveDeadLetters(ctx, req.Key)
		}
		job, err = q.ReopenUnfinishedJob(ctx, r.NewRunID, req.Key)
		return err
	})
	return asJob(job), err
}

// recordReplay records a reset in the dead letters and in the audit log. A run that no
// reset made, such as that of a review whose history was deleted, leaves no audit entry.
func recordReplay(ctx context.Context, q *db.Queries, workflowID string, r review.Replay) error {
	letters, err := q.ReplayDeadLetters(ctx, workflowID, r.NewRunID, r.DeadRunID)
	if err != nil {
		return err
	}
	for _, letter := range letters {
		err := q.InsertReplay(ctx, db.InsertReplayParams{DeadLetterID: letter, NewRunID: r.NewRunID, Who: r.Identity, Reason: r.Reason})
		if err != nil {
			return err
		}
	}
	if r.Identity == "" && r.Reason == "" {
		return nil
	}
	return audit(ctx, q, "workflow:"+workflowID, r.Identity, "replay", map[string]any{
		"dead_run": r.DeadRunID, "new_run": r.NewRunID, "reason": r.Reason,
	})
}

// A Replay is a replay record of a dead letter.
type Replay = db.ReplaysRow

// A ReplayRequest is an operator's request to replay one dead letter, recorded before
// the reset (processing 8.5.3).
type ReplayRequest struct {
	ID           int64
	DeadLetterID int64
	Who          string
	Reason       string
	Full         bool // restart from the first stage
	// Note is what engineering has found about an escalated letter, or empty. It is kept in the
	// audit log only and, unlike AnnotateDeadLetter, acknowledges nothing.
	Note string
}

// HoldDeadLetter keeps other operators from replaying the letter until release is
// called or this process dies. ok is false if another operator holds it. It uses one
// connection of the pool.
func (d *DB) HoldDeadLetter(ctx context.Context, id int64) (release func(), ok bool, err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, false, postgres.Interpret("hold dead letter", err)
	}
	q := db.New(postgres.Classified(conn))
	ok, err = q.TryLockDeadLetter(ctx, id)
	if err != nil || !ok {
		conn.Release()
		return nil, false, err
	}
	return func() {
		// If the unlock fails, the connection is broken and its session has ended.
		_ = q.UnlockDeadLetter(context.WithoutCancel(ctx), id)
		conn.Release()
	}, true, nil
}

// RequestReplay moves an open letter to replaying and records the operator and the
// reason. A letter whose last request was interrupted may be requested again: the new
// request replaces the old one. In any other state it changes nothing and the error has
// class WRITE_CONFLICT. The caller must hold the letter.
func (d *DB) RequestReplay(ctx context.Context, r ReplayRequest) (ReplayRequest, error) {
	err := d.inTx(ctx, "request replay", func(q *db.Queries) error {
		state, err := q.DeadLetterState(ctx, r.DeadLetterID)
		if err != nil {
			return postgres.Missing("dead letter", r.DeadLetterID, err)
		}
		_, notInterrupted := q.InterruptedReplay(ctx, r.DeadLetterID)
		switch {
		case DeadLetterState(state) == DeadLetterOpen:
			err = q.MarkReplaying(ctx, r.DeadLetterID)
		case DeadLetterState(state) != DeadLetterReplaying, postgres.NoRow(notInterrupted):
			err = failure.Errorf(failure.WriteConflict, "dead letter %d is %s", r.DeadLetterID, state)
		case notInterrupted != nil:
			err = notInterrupted
		default:
			err = q.WithdrawReplayRequests(ctx, r.DeadLetterID)
		}
		if err != nil {
			return err
		}
		r.ID, err = q.InsertReplayRequest(ctx, db.InsertReplayRequestParams{
			DeadLetterID: r.DeadLetterID, Who: r.Who, Reason: r.Reason, FullRestart: r.Full,
		})
		if err != nil {
			return err
		}
		if r.Note != "" {
			if err := auditLetter(ctx, q, r.Who, "annotate", r.DeadLetterID, map[string]any{"note": r.Note}); err != nil {
				return err
			}
		}
		return auditLetter(ctx, q, r.Who, "request replay", r.DeadLetterID, map[string]any{"request": r.ID, "reason": r.Reason, "full": r.Full})
	})
	return r, err
}

// InterruptedReplay returns the request whose reset has an unknown result; ok is
// false if there is none.
func (d *DB) InterruptedReplay(ctx context.Context, letter int64) (r ReplayRequest, ok bool, err error) {
	row, err := d.Queries.InterruptedReplay(ctx, letter)
	if postgres.NoRow(err) {
		return ReplayRequest{}, false, nil
	}
	return ReplayRequest{ID: row.ID, DeadLetterID: row.DeadLetterID, Who: row.Who, Reason: row.Reason, Full: row.Full}, err == nil, err
}

// ConfirmReplay records that the reset has created the run newRunID, and who requested it
// in the run's replay record. If the run has begun, the record exists.
func (d *DB) ConfirmReplay(ctx context.Context, r ReplayRequest, newRunID string) error {
	return d.inTx(ctx, "confirm replay", func(q *db.Queries) error {
		changed, err := q.CloseReplayRequest(ctx, newRunID, r.ID)
		if err != nil || changed == 0 { // confirmed before
			return err
		}
		err = q.ExplainReplay(ctx, db.ExplainReplayParams{
			DeadLetterID: r.DeadLetterID, NewRunID: newRunID, Who: r.Who, Reason: r.Reason, RequestID: r.ID,
		})
		if err != nil {
			return err
		}
		return auditLetter(ctx, q, r.Who, "replay", r.DeadLetterID, map[string]any{"request": r.ID, "new_run": newRunID})
	})
}

// WithdrawReplay records that the reset has not happened and reopens the letter.
func (d *DB) WithdrawReplay(ctx context.Context, r ReplayRequest) error {
	return d.inTx(ctx, "withdraw replay", func(q *db.Queries) error {
		if err := q.WithdrawReplayRequests(ctx, r.DeadLetterID); err != nil {
			return err
		}
		if err := q.ReopenDeadLetterIfNotReplayed(ctx, r.DeadLetterID); err != nil {
			return err
		}
		return auditLetter(ctx, q, r.Who, "withdraw replay", r.DeadLetterID, map[string]any{"request": r.ID})
	})
}
