package store

import (
	"context"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// CatchUpMark returns how far the search for changelists without a review has come
// on a Perforce server: every changelist after since and up to mark was checked. known
// is false if the search never ran.
func (d *DB) CatchUpMark(ctx context.Context, serverID string) (since, mark review.Changelist, known bool, err error) {
	row, err := d.q.CatchUpMark(ctx, serverID)
	if postgres.NoRow(err) {
		return 0, 0, false, nil
	}
	return row.Since, row.Mark, err == nil, postgres.Interpret("read mark of the search for changelists", err)
}

// RaiseCatchUpMark records that the search has come to mark. A lower mark changes
// nothing.
func (d *DB) RaiseCatchUpMark(ctx context.Context, serverID string, mark review.Changelist) error {
	err := d.q.RaiseCatchUpMark(ctx, db.RaiseCatchUpMarkParams{ServerID: serverID, Mark: mark})
	return postgres.Interpret("record mark of the search for changelists", err)
}

// WithoutReview returns the changelists of cls that have no review, in ascending
// order.
func (d *DB) WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error) {
	numbers := make([]int64, len(cls))
	for i, cl := range cls {
		numbers[i] = int64(cl)
	}
	found, err := d.q.ChangelistsWithoutReview(ctx, numbers)
	return postgres.Convert("search changelists without a review", found, err, func(n int64) review.Changelist { return review.Changelist(n) })
}
