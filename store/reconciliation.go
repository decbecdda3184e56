package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// reconciler is the actor of reconciliation in the audit log.
const reconciler = "reconciliation"

// DueDeliveries returns at most limit rows for reconciliation, unsent rows and rows sent
// within watch; the longest unchecked first, so that neither kind keeps the other from
// being checked. It leaves out rows that may be in flight, whose last attempt is younger
// than grace, and rows sent less than bounced ago.
func (d *DB) DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error) {
	rows, err := d.q.DueDeliveries(ctx, db.DueDeliveriesParams{Grace: grace, Bounced: bounced, Watch: watch, MaxRows: limit})
	return postgres.Convert("read due deliveries", rows, err, func(r db.DueDeliveriesRow) review.DueDelivery {
		return review.DueDelivery{
			Delivery: byOurClock(asDelivery(r.Delivery), r.Now), JobState: r.JobState, Report: postgres.OrZero(r.Report),
			Confirmed: r.Delivery.ConfirmedAt != nil,
		}
	})
}

// RecordCheck records that the evidence sources were queried for a row, and whether
// one has evidence of a mail that was marked sent.
func (d *DB) RecordCheck(ctx context.Context, id int64, confirmed bool) error {
	return postgres.Interpret("record check of delivery", d.q.RecordCheck(ctx, db.RecordCheckParams{ID: id, Confirmed: confirmed}))
}

// FailDelivery records a bounce, even of a row that was marked sent
// (notification 8.1). changed is false if the row is not as seen.
func (d *DB) FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (changed bool, err error) {
	return d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "fail", map[string]any{"was": seen.Status, "class": class}, func(q *db.Queries) (int64, error) {
		return q.FailDeliveryIfUnchanged(ctx, db.FailDeliveryIfUnchangedParams{
			ID: seen.ID, Status: seen.Status, Attempts: seen.Attempts, ErrorClass: string(class),
		})
	})
}

// ReleaseDelivery makes a held row pending, because the evidence shows that the mail
// was not accepted. It changes nothing if the row was unproven twice.
func (d *DB) ReleaseDelivery(ctx context.Context, seen review.Delivery) (changed bool, err error) {
	return d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "release", map[string]any{"was": seen.Status}, func(q *db.Queries) (int64, error) {
		return q.ReleaseHeldDelivery(ctx, db.ReleaseHeldDeliveryParams{ID: seen.ID, Attempts: seen.Attempts})
	})
}

// RequeueUnproven clears the markers of a row that was marked sent and of which no
// source has evidence (notification 8.2, 8.3). The first time the row becomes
// pending and is sent. The second time it is held for an operator, because the
// evidence is probably missing. status is empty if the row is not as seen, or was
// confirmed before.
func (d *DB) RequeueUnproven(ctx context.Context, seen review.Delivery) (status review.DeliveryStatus, err error) {
	if seen.NotifiedAt == nil {
		return "", nil
	}
	detail := map[string]any{"was": seen.Status, "message": seen.NotificationID}
	_, err = d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "requeue", detail, func(q *db.Queries) (_ int64, err error) {
		status, err = q.RequeueUnprovenDelivery(ctx, db.RequeueUnprovenDeliveryParams{
			ID: seen.ID, Attempts: seen.Attempts, NotifiedAt: seen.NotifiedAt,
		})
		return oneOrNone(err)
	})
	return status, err
}
