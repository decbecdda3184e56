package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReserveShelf opens the job of a shelf's review under the next free version of
// the changelist, and returns the request it stands for. The same event reserves
// the same one again. runID is the workflow run that asks.
func (d *DB) ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error) {
	req := review.Request{Changelist: cl, ServerID: serverID, Shelved: true}
	err := d.inTx(ctx, "reserve review of shelf", func(q *db.Queries) error {
		if err := q.LockChangelist(ctx, int64(cl)); err != nil {
			return err
		}
		job, err := q.JobOfShelfEvent(ctx, event)
		if err == nil {
			req.Version, req.Key = job.ReviewVersion, job.IdempotencyKey
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		top, err := q.TopVersion(ctx, cl)
		if err != nil {
			return err
		}
		req.Version = review.Version(top + 1)
		req.Key = review.ShelfReviewKey(serverID, cl, req.Version)
		return q.InsertShelfJob(ctx, db.InsertShelfJobParams{
			IdempotencyKey: req.Key, ChangelistID: cl, ReviewVersion: req.Version, ServerID: serverID, RunID: runID, ShelfEvent: event,
		})
	})
	return req, err
}

// ReviewsOfShelf returns the keys of the reviews of a changelist's shelf that are not
// over.
func (d *DB) ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error) {
	keys, err := d.q.ReviewsOfShelf(ctx, cl)
	return keys, interpret("look for reviews of shelf", err)
}

// NoteContent keeps what a version reads, as far as it is about shelves, and
// returns the changelist of the shelf that the change was; 0 if no other version
// was of one.
func (d *DB) NoteContent(ctx context.Context, cl review.Changelist, v review.Version, c review.Content) (shelf review.Changelist, err error) {
	err = d.inTx(ctx, "note content", func(q *db.Queries) (err error) {
		shelf, err = noteContent(ctx, q, cl, v, c)
		return err
	})
	return shelf, err
}

func noteContent(ctx context.Context, q *db.Queries, cl review.Changelist, v review.Version, c review.Content) (review.Changelist, error) {
	shelf, err := q.ShelfOf(ctx, db.ShelfOfParams{
		Changelists: []int64{int64(cl), int64(c.OldNumber)}, ChangelistID: cl, ReviewVersion: v,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows) && !c.Shelved:
		return 0, nil // as nearly always: nothing was ever shelved
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return 0, err
	}
	of := shelf
	if c.Shelved {
		of = cl
	}
	return shelf, q.SaveContent(ctx, db.SaveContentParams{
		ChangelistID: cl, ReviewVersion: v, Shelved: c.Shelved, Digest: c.Digest, ShelfOf: int64(of),
	})
}

// SameAsShelf returns the last review of the shelf that a change was, if that read
// the same as the given version; nil if it did not. A submitted change that was
// reviewed before as such is like nothing else: who asks for another version wants
// another review.
func (d *DB) SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.Prior, error) {
	row, err := d.q.SameAsShelf(ctx, db.SameAsShelfParams{ChangelistID: cl, ReviewVersion: v})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, interpret("compare with shelf", err)
	}
	return &review.Prior{Changelist: row.ChangelistID, Version: row.ReviewVersion, Report: review.ArtifactRef(text(row.Report))}, nil
}
