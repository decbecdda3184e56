package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
)

// A ReplayRequest is an operator's wish to replay one dead letter, recorded
// before the reset that fulfils it (criticizer-processing 8.5.3).
type ReplayRequest struct {
	ID           int64
	DeadLetterID int64
	Who          string
	Evidence     string
	Full         bool // restart from the first stage
}

// HoldDeadLetter keeps other operators from replaying the letter until release
// is called, or this process dies. ok is false if another holds it. It takes up
// one connection of the pool meanwhile.
func (d *DB) HoldDeadLetter(ctx context.Context, id int64) (release func(), ok bool, err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, false, interpret("hold dead letter", err)
	}
	q := db.New(conn)
	ok, err = q.TryLockDeadLetter(ctx, id)
	if err != nil || !ok {
		conn.Release()
		return nil, false, interpret("hold dead letter", err)
	}
	return func() {
		// A connection that cannot unlock is broken, and with it the lock is gone.
		_ = q.UnlockDeadLetter(context.WithoutCancel(ctx), id)
		conn.Release()
	}, true, nil
}

// RequestReplay moves an open letter to replaying and records who asked and
// why. A letter whose last request was interrupted may be requested again: the
// new request takes the place of the old. Any other state is an error of class
// WRITE_CONFLICT, and nothing changes. Call it only while holding the letter.
func (d *DB) RequestReplay(ctx context.Context, r ReplayRequest) (ReplayRequest, error) {
	err := d.inTx(ctx, "request replay", func(q *db.Queries) error {
		if err := leaveOpen(ctx, q, r.DeadLetterID); err != nil {
			return err
		}
		row, err := q.InsertReplayRequest(ctx, db.InsertReplayRequestParams{
			DeadLetterID: r.DeadLetterID, Who: r.Who, Evidence: r.Evidence, FullRestart: r.Full,
		})
		if err != nil {
			return err
		}
		r.ID = row.ID
		return auditLetter(ctx, q, r.Who, "request replay", r.DeadLetterID, map[string]any{"request": r.ID, "evidence": r.Evidence, "full": r.Full})
	})
	return r, err
}

func leaveOpen(ctx context.Context, q *db.Queries, letter int64) error {
	state, err := q.DeadLetterState(ctx, letter)
	if errors.Is(err, pgx.ErrNoRows) {
		return noLetter(letter)
	}
	if err != nil {
		return err
	}
	switch LetterState(state) {
	case LetterOpen:
		return q.MarkReplaying(ctx, letter)
	case LetterReplaying:
		_, err := q.InterruptedReplay(ctx, letter)
		switch {
		case err == nil:
			return q.WithdrawReplayRequests(ctx, letter)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
	}
	return failure.Errorf(failure.WriteConflict, "dead letter %d is %s", letter, state)
}

// InterruptedReplay returns the request of which is not known whether its reset
// has happened; ok is false if there is none.
func (d *DB) InterruptedReplay(ctx context.Context, letter int64) (r ReplayRequest, ok bool, err error) {
	row, err := d.q.InterruptedReplay(ctx, letter)
	if errors.Is(err, pgx.ErrNoRows) {
		return ReplayRequest{}, false, nil
	}
	return ReplayRequest{
		ID: row.ID, DeadLetterID: row.DeadLetterID, Who: row.Who, Evidence: row.Evidence, Full: row.FullRestart,
	}, err == nil, interpret("read replay request", err)
}

// ConfirmReplay records that the reset has happened and which run it made. The
// run's trace is explained whether the run has left it already or not.
func (d *DB) ConfirmReplay(ctx context.Context, r ReplayRequest, newRunID string) error {
	return d.inTx(ctx, "confirm replay", func(q *db.Queries) error {
		changed, err := q.CloseReplayRequest(ctx, db.CloseReplayRequestParams{ID: r.ID, NewRunID: newRunID})
		if err != nil || changed == 0 { // confirmed before
			return err
		}
		err = q.ExplainReplay(ctx, db.ExplainReplayParams{
			DeadLetterID: r.DeadLetterID, NewRunID: newRunID, Who: r.Who, Reason: r.Evidence, RequestID: r.ID,
		})
		if err != nil {
			return err
		}
		return auditLetter(ctx, q, r.Who, "replay", r.DeadLetterID, map[string]any{"request": r.ID, "new_run": newRunID})
	})
}

// WithdrawReplay records that the reset has not happened: the letter is open
// again.
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

// ReopenDeadLetter opens a letter again whose replay has ended without an
// outcome: its run was terminated, canceled, timed out or deleted. how tells
// which, for the letter's trail. It changes nothing, and reports so, if the
// letter is no longer being replayed.
func (d *DB) ReopenDeadLetter(ctx context.Context, l DeadLetter, how string) (reopened bool, err error) {
	err = d.inTx(ctx, "reopen dead letter", func(q *db.Queries) error {
		if _, err := q.LockJob(ctx, l.WorkflowID); err != nil {
			return err
		}
		changed, err := q.ReopenReplayedDeadLetter(ctx, l.ID)
		if err != nil || changed == 0 {
			return err
		}
		reopened = true
		if err := q.DeadLetterUnfinishedJob(ctx, l.WorkflowID); err != nil {
			return err
		}
		return auditLetter(ctx, q, "bookkeeping", "reopen", l.ID, map[string]any{"note": "replay abandoned: " + how})
	})
	return reopened, err
}
