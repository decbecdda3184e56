package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// CatchUpMark returns up to which changelist of a server the search for those
// without a review has come, and the changelist behind which it began. known is
// false if it never ran.
func (d *DB) CatchUpMark(ctx context.Context, serverID string) (since, mark review.Changelist, known bool, err error) {
	row, err := d.q.CatchUpMark(ctx, serverID)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	return review.Changelist(row.Since), review.Changelist(row.Mark), err == nil, interpret("read how far the search for changelists has come", err)
}

// RaiseCatchUpMark notes that the search has come this far. A lower mark than
// before changes nothing.
func (d *DB) RaiseCatchUpMark(ctx context.Context, serverID string, mark review.Changelist) error {
	err := d.q.RaiseCatchUpMark(ctx, db.RaiseCatchUpMarkParams{ServerID: serverID, Mark: int64(mark)})
	return interpret("note how far the search for changelists has come", err)
}

// WithoutReview returns those of the changelists that no review was ever opened
// for, in ascending order.
func (d *DB) WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error) {
	numbers := make([]int64, len(cls))
	for i, cl := range cls {
		numbers[i] = int64(cl)
	}
	unknown, err := d.q.UnknownChangelists(ctx, numbers)
	missing := make([]review.Changelist, len(unknown))
	for i, n := range unknown {
		missing[i] = review.Changelist(n)
	}
	return missing, interpret("look for changelists without a review", err)
}
