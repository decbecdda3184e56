package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// reconciler is who reconciliation is in the audit log.
const reconciler = "reconciliation"

// DueDeliveries returns at most limit rows that reconciliation is to look at:
// first those that are not sent, then those that were sent within watch; the
// longest unchecked come first. A row whose last attempt is younger than grace
// is left alone, for it may be under way, and so is one that was sent less than
// bounced ago.
func (d *DB) DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error) {
	rows, err := d.q.DueDeliveries(ctx, db.DueDeliveriesParams{Grace: grace, Bounced: bounced, Watch: watch, MaxRows: int32(limit)})
	due := make([]review.DueDelivery, len(rows))
	for i, row := range rows {
		due[i] = review.DueDelivery{
			Delivery: byOurClock(asDelivery(row.Delivery), row.Now), JobState: row.JobState, Report: review.ArtifactRef(text(row.Report)),
			Confirmed: row.Delivery.ConfirmedAt != nil,
		}
	}
	return due, interpret("read due deliveries", err)
}

// NoteChecked records that the provider was asked about a row, and whether it
// has evidence of a mail that was marked sent.
func (d *DB) NoteChecked(ctx context.Context, id int64, confirmed bool) error {
	return interpret("note delivery", d.q.NoteChecked(ctx, db.NoteCheckedParams{ID: id, Confirmed: confirmed}))
}

// FailDelivery records that a mail bounced, be it that the row was marked sent
// (review-notification 8.1), with a trace in the audit log. changed is false if
// the row is no longer as it was seen.
func (d *DB) FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (changed bool, err error) {
	return d.reconcile(ctx, "fail", seen, map[string]any{"was": seen.Status, "class": class}, func(q *db.Queries) (int64, error) {
		return q.FailDeliveryIfUnchanged(ctx, db.FailDeliveryIfUnchangedParams{
			ID: seen.ID, Status: seen.Status, Attempts: int32(seen.Attempts), FailureClass: string(class),
		})
	})
}

// ReleaseDelivery makes a held row pending, now that the provider knows it was
// not accepted. It leaves alone a row that was found unproven twice.
func (d *DB) ReleaseDelivery(ctx context.Context, seen review.Delivery) (changed bool, err error) {
	return d.reconcile(ctx, "release", seen, map[string]any{"was": seen.Status}, func(q *db.Queries) (int64, error) {
		return q.ReleaseHeldDelivery(ctx, db.ReleaseHeldDeliveryParams{ID: seen.ID, Attempts: int32(seen.Attempts)})
	})
}

// RequeueUnproven clears the markers of a row that was marked sent although the
// provider has no record of it (review-notification 8.2, 8.3). The first time
// the row becomes pending, to be sent; the second time it is held for an
// operator, for then it is rather the evidence that is missing. status is empty
// if the row is no longer as it was seen, or was confirmed before.
func (d *DB) RequeueUnproven(ctx context.Context, seen review.Delivery) (status review.DeliveryStatus, err error) {
	if seen.NotifiedAt == nil {
		return "", nil
	}
	_, err = d.reconcile(ctx, "requeue", seen, map[string]any{"was": seen.Status, "message": seen.NotificationID}, func(q *db.Queries) (changed int64, err error) {
		status, err = q.RequeueUnprovenDelivery(ctx, db.RequeueUnprovenDeliveryParams{
			ID: seen.ID, Attempts: int32(seen.Attempts), NotifiedAt: seen.NotifiedAt,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		return 1, err
	})
	return status, err
}

// reconcile changes one row, with a trace of it if it did.
func (d *DB) reconcile(ctx context.Context, action string, seen review.Delivery, detail map[string]any, change func(*db.Queries) (int64, error)) (changed bool, err error) {
	err = d.inTx(ctx, action+" delivery", func(q *db.Queries) error {
		n, err := change(q)
		if changed = n == 1; err != nil || !changed {
			return err
		}
		return auditDelivery(ctx, q, reconciler, action, seen.ID, detail)
	})
	return changed && err == nil, err
}

// EarlierReport returns the last review of the changelist, or of the shelf that it
// was, that had succeeded when version v was opened; its report may be unknown. It
// is zero if there is none (review-notification 10.4).
func (d *DB) EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.Prior, error) {
	row, err := d.q.EarlierReport(ctx, db.EarlierReportParams{ChangelistID: cl, ReviewVersion: v})
	if errors.Is(err, pgx.ErrNoRows) {
		return review.Prior{}, nil
	}
	return review.Prior{
		Changelist: row.ChangelistID, Version: row.ReviewVersion, Report: review.ArtifactRef(text(row.Report)), Until: row.BegunAt,
	}, interpret("read earlier report", err)
}
