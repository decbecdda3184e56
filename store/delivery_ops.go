package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// An OutboxEntry is a row of the outbox with the review it belongs to.
type OutboxEntry struct {
	DeliveryRow
	JobState   review.JobState `json:"job_state"`
	WorkflowID string          `json:"workflow_id"`
}

// A DeliveryFilter chooses rows of the outbox. A zero field chooses all, except
// that there is always a Limit; its default is 1000.
type DeliveryFilter struct {
	ID         int64
	Changelist review.Changelist
	Status     review.DeliveryStatus
	Limit      int
}

// FindDeliveries returns the rows that f chooses: the newest changelist first,
// then by version and recipient.
func (d *DB) FindDeliveries(ctx context.Context, f DeliveryFilter) ([]OutboxEntry, error) {
	if f.Limit == 0 {
		f.Limit = 1000
	}
	rows, err := d.q.FindDeliveries(ctx, db.FindDeliveriesParams{
		ID: f.ID, Changelist: int64(f.Changelist), Status: string(f.Status), MaxRows: int32(f.Limit),
	})
	entries := make([]OutboxEntry, len(rows))
	for i, row := range rows {
		entries[i] = OutboxEntry{asDeliveryRow(row.Delivery), row.JobState, row.JobKey}
	}
	return entries, interpret("read deliveries", err)
}

// FindDelivery returns one row; the error has class NOT_FOUND if there is none.
func (d *DB) FindDelivery(ctx context.Context, id int64) (OutboxEntry, error) {
	entries, err := d.FindDeliveries(ctx, DeliveryFilter{ID: id})
	if err == nil && len(entries) == 0 || id == 0 {
		err = failure.Errorf(failure.NotFound, "delivery %d does not exist", id)
	}
	if err != nil {
		return OutboxEntry{}, err
	}
	return entries[0], nil
}

// WaiveDelivery records an operator's decision that a row need not be sent. One
// that was sent or waived stays as it is; the error then has class
// WRITE_CONFLICT.
func (d *DB) WaiveDelivery(ctx context.Context, id int64, who, reason string) error {
	return d.decide(ctx, "waive", id, who, map[string]any{"reason": reason},
		func(q *db.Queries) (int64, error) { return q.WaiveUnsentDelivery(ctx, id) })
}

// ResendDelivery records an operator's word that the mail of a row was not
// accepted, and makes the row pending. It refuses, with WRITE_CONFLICT, a row
// that was sent, that is waiting to be sent anyway, or that may be being sent:
// by a review that runs, or by an attempt that began less than settle ago.
func (d *DB) ResendDelivery(ctx context.Context, id int64, settle time.Duration, who, reason string) error {
	return d.decide(ctx, "resend", id, who, map[string]any{"reason": reason}, func(q *db.Queries) (int64, error) {
		return q.RequeueUnsentDelivery(ctx, db.RequeueUnsentDeliveryParams{ID: id, Settle: settle})
	})
}

// ReaddressDelivery sends what a row was to send to another address: a new row
// takes its place, and it is waived. It refuses, with WRITE_CONFLICT, a row
// whose mail may have reached somebody, and an address that has a row already.
// The log of the old address stays (review-notification 8.1).
func (d *DB) ReaddressDelivery(ctx context.Context, id int64, address, who, reason string) (newID int64, err error) {
	err = d.inTx(ctx, "readdress delivery", func(q *db.Queries) error {
		old, err := q.WaiveRefusedDelivery(ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return unmoved(ctx, q, "readdress", id)
		}
		if err != nil {
			return err
		}
		newID, err = q.InsertDelivery(ctx, db.InsertDeliveryParams{
			ChangelistID: old.ChangelistID, ReviewVersion: old.ReviewVersion, Address: address,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return failure.Errorf(failure.WriteConflict,
				"readdress delivery %d: version %d of the review of changelist %d has a delivery to that address", id, old.ReviewVersion, old.ChangelistID)
		}
		if err != nil {
			return err
		}
		if err := auditDelivery(ctx, q, who, "readdress", id, map[string]any{"reason": reason, "replaced_by": newID}); err != nil {
			return err
		}
		return auditDelivery(ctx, q, who, "readdress", newID, map[string]any{"reason": reason, "replaces": id})
	})
	return newID, err
}

// decide changes one row as an operator decided, with a trace of it.
func (d *DB) decide(ctx context.Context, action string, id int64, who string, detail map[string]any, change func(*db.Queries) (int64, error)) error {
	return d.inTx(ctx, action+" delivery", func(q *db.Queries) error {
		changed, err := change(q)
		if err != nil {
			return err
		}
		if changed == 0 {
			return unmoved(ctx, q, action, id)
		}
		return auditDelivery(ctx, q, who, action, id, detail)
	})
}

// unmoved says why a row was left as it is.
func unmoved(ctx context.Context, q *db.Queries, action string, id int64) error {
	found, err := q.Delivery(ctx, id)
	row := found.Delivery
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return failure.Errorf(failure.NotFound, "delivery %d does not exist", id)
	case err != nil:
		return err
	case row.Begun || row.NotificationID != nil && row.NotifiedAt == nil:
		return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s, and its mail may have been accepted", action, id, row.Status)
	}
	return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s", action, id, row.Status)
}

// DeliveryTrail returns what was done about a row besides sending it, oldest first.
func (d *DB) DeliveryTrail(ctx context.Context, id int64) ([]AuditEntry, error) {
	return d.trail(ctx, deliveryObject(id))
}

func deliveryObject(id int64) string { return fmt.Sprintf("delivery:%d", id) }

func auditDelivery(ctx context.Context, q *db.Queries, who, action string, id int64, detail map[string]any) error {
	return audit(ctx, q, deliveryObject(id), who, action, detail)
}
