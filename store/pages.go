package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
)

// ClaimPage takes a page that is due and that nobody else will take before
// lease is over. told are the channels that have accepted it, attempt counts
// from 1; ok is false if no page is due. The page of a letter that is settled
// is never due.
func (d *DB) ClaimPage(ctx context.Context, lease time.Duration) (page failure.Page, told []string, attempt int, ok bool, err error) {
	row, err := d.q.ClaimPage(ctx, lease)
	if errors.Is(err, pgx.ErrNoRows) {
		return failure.Page{}, nil, 0, false, nil
	}
	class := failure.Class(row.ErrorClass)
	return failure.Page{
		ID: row.ID, Reason: failure.PageReason(row.Reason),
		Changelist: int64(row.ChangelistID), ReviewVersion: int(row.ReviewVersion),
		Stage: row.Stage, ErrorClass: class, Hint: class.Describe().Hint, LastFailureAt: row.LastFailureAt,
		DeadLetterID: row.DeadLetterID, WorkflowID: row.WorkflowID, RunID: row.RunID,
	}, row.Told, int(row.Attempts), err == nil, interpret("claim page", err)
}

// MarkPageTold notes that a channel has accepted the page.
func (d *DB) MarkPageTold(ctx context.Context, id int64, channel string) error {
	return interpret("mark page told", d.q.AddToldChannel(ctx, db.AddToldChannelParams{ID: id, Channel: channel}))
}

// MarkPageSent notes that every channel has accepted the page.
func (d *DB) MarkPageSent(ctx context.Context, id int64) error {
	return interpret("mark page sent", d.q.MarkPageSent(ctx, id))
}

// PostponePage ends a claim: the page is due again after delay.
func (d *DB) PostponePage(ctx context.Context, id int64, delay time.Duration) error {
	return interpret("postpone page", d.q.PostponePage(ctx, db.PostponePageParams{ID: id, Delay: delay}))
}
