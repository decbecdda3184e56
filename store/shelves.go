package store

import (
	"context"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReserveShelf opens the job of a shelf's review under the next free version of the
// changelist and returns its request. The same event returns the same request. runID
// is the workflow run that asks.
func (d *DB) ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error) {
	req := review.Request{Changelist: cl, ServerID: serverID, Shelved: true}
	err := d.inTx(ctx, "reserve review of shelf", func(q *db.Queries) error {
		if err := q.LockChangelist(ctx, int64(cl)); err != nil {
			return err
		}
		job, err := q.JobOfShelfEvent(ctx, event)
		if !postgres.NoRow(err) {
			req.Version, req.Key = job.Version, job.IdempotencyKey
			return err
		}
		top, err := q.TopVersion(ctx, cl)
		if err != nil {
			return err
		}
		req.Version = review.Version(top + 1)
		req.Key = review.ShelfReviewKey(serverID, cl, req.Version)
		return q.InsertShelfJob(ctx, db.InsertShelfJobParams{
			IdempotencyKey: req.Key, Changelist: cl, Version: req.Version, ServerID: serverID, RunID: runID, ShelfEvent: event,
		})
	})
	return req, err
}

// RecordContent records the content that a version reads, if a shelf is involved or the
// change is skipped, and returns the changelist of the shelf that became the change; 0 if there is none.
func (d *DB) RecordContent(ctx context.Context, cl review.Changelist, v review.Version, c review.Content) (shelf review.Changelist, err error) {
	err = d.inTx(ctx, "record content", func(q *db.Queries) error {
		shelf, err = q.ShelfOf(ctx, []int64{int64(cl), int64(c.OldNumber)}, cl, v)
		if err != nil && !postgres.NoRow(err) {
			return err
		}
		of := shelf
		switch {
		case c.Shelved:
			of = cl
		case postgres.NoRow(err): // nearly always: the change was never shelved
			if of = cl; c.SkippedBy == "" {
				return nil
			}
		}
		return q.SaveContent(ctx, db.SaveContentParams{
			Changelist: cl, Version: v, Shelved: c.Shelved, Digest: c.Digest, ShelfOf: of, SkippedBy: string(c.SkippedBy),
		})
	})
	return shelf, err
}

// SameAsShelf returns the last review of the shelf that became the change, if the
// shelf had the content of the given version; nil otherwise. It returns nil for a
// rerun of a submitted change: a person has asked for another review.
func (d *DB) SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.EarlierReview, error) {
	row, err := d.Queries.SameAsShelf(ctx, cl, v)
	if postgres.NoRow(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &review.EarlierReview{Changelist: row.Changelist, Version: row.Version, Report: postgres.OrZero(row.Report)}, nil
}

// AdoptOutcome lets a version use the report of the review of its shelf, with its outcome. It
// reports whether the shelf had the same content.
func (d *DB) AdoptOutcome(ctx context.Context, of review.Owner, report review.ArtifactRef) (adopted bool, err error) {
	n, err := d.Queries.AdoptOutcome(ctx, int64(of.Changelist), int(of.Version), string(report))
	return n > 0, err
}

// ReportOwner returns the review that the report was stored for: the review of the shelf
// that of has adopted it from, else of.
func (d *DB) ReportOwner(ctx context.Context, of review.Owner, report review.ArtifactRef) (review.Owner, error) {
	row, err := d.Queries.ReportOwner(ctx, of.Changelist, of.Version, report)
	if postgres.NoRow(err) {
		return of, nil
	}
	return review.Owner{Changelist: review.Changelist(row.Changelist), Version: review.Version(row.Version)}, err
}
