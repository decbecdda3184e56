package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// What operators read about deliveries.
type (
	// An OutboxEntry is an outbox row with the review it belongs to.
	OutboxEntry = db.FindDeliveriesRow
	// A DeliveryFilter selects outbox rows, for [db.Queries.FindDeliveries].
	DeliveryFilter = db.FindDeliveriesParams
	// An AttemptRow is one attempt of a delivery.
	AttemptRow = db.AttemptsRow
	// A RecipientDecision is whether a person is notified of a version of a review.
	RecipientDecision = db.RecipientDecisionsRow
	// A NoticeRow is the notice that a review waits for an operator.
	NoticeRow = db.NoticesRow
)

// FindDelivery returns one row. The error has class NOT_FOUND if it does not exist.
func (d *DB) FindDelivery(ctx context.Context, id int64) (OutboxEntry, error) {
	if id == 0 { // which selects all
		id = -1
	}
	entries, err := d.FindDeliveries(ctx, DeliveryFilter{ID: id})
	return first(entries, err, "delivery", id)
}

// WaiveDelivery records an operator's decision not to send a row. If the row was sent
// or waived, it changes nothing and the error has class WRITE_CONFLICT.
func (d *DB) WaiveDelivery(ctx context.Context, id int64, who, reason string) error {
	return d.decide(ctx, "waive", id, who, reason,
		func(q *db.Queries) (int64, error) { return q.WaiveUnsentDelivery(ctx, id) })
}

// ResendDelivery records an operator's statement that the mail of a row was not
// accepted, and makes the row pending. It also states that the recipient's address works: it
// gets mail again. The error has class WRITE_CONFLICT if the row
// was sent, is pending and not begun, or may be in flight: its review runs, or its
// last attempt began less than settle ago. A waived row also waits for the end of its review.
func (d *DB) ResendDelivery(ctx context.Context, id int64, settle time.Duration, who, reason string) error {
	return d.decide(ctx, "resend", id, who, reason, func(q *db.Queries) (int64, error) {
		changed, err := q.RequeueUnsentDelivery(ctx, id, settle)
		if err == nil && changed == 1 {
			err = q.LiftBounces(ctx, id)
		}
		return changed, err
	})
}

// decide changes one row as an operator decided and records the decision.
func (d *DB) decide(ctx context.Context, action string, id int64, who, reason string, change func(*db.Queries) (int64, error)) error {
	changed, err := d.changeAudited(ctx, deliveryObject(id), who, action, map[string]any{"reason": reason}, change)
	if err == nil && !changed {
		return unchanged(ctx, d.Queries, action, id)
	}
	return err
}

// ReaddressDelivery waives a row and inserts one for another address. The error has
// class WRITE_CONFLICT if the mail may have reached the recipient, or if the other
// address has a row. The log of the old address is kept (notification 8.1).
func (d *DB) ReaddressDelivery(ctx context.Context, id int64, address, who, reason string) (newID int64, err error) {
	err = d.inTx(ctx, "readdress delivery", func(q *db.Queries) error {
		old, err := q.WaiveRefusedDelivery(ctx, id)
		if postgres.NoRow(err) {
			return unchanged(ctx, q, "readdress", id)
		}
		if err != nil {
			return err
		}
		newID, err = q.InsertDelivery(ctx, old.Changelist, old.Version, address)
		if postgres.NoRow(err) {
			return failure.Errorf(failure.WriteConflict,
				"readdress delivery %d: version %d of the review of changelist %d has a delivery to that address", id, old.Version, old.Changelist)
		}
		if err != nil {
			return err
		}
		if err := audit(ctx, q, deliveryObject(id), who, "readdress", map[string]any{"reason": reason, "replaced_by": newID}); err != nil {
			return err
		}
		return audit(ctx, q, deliveryObject(newID), who, "readdress", map[string]any{"reason": reason, "replaces": id})
	})
	return newID, err
}

// unchanged returns the reason why an operator's decision changed no row.
func unchanged(ctx context.Context, q *db.Queries, action string, id int64) error {
	found, err := q.Delivery(ctx, id)
	row := found.Delivery
	switch {
	case err != nil:
		return postgres.Missing("delivery", id, err)
	case strings.HasPrefix(row.Recipient, "forgotten:"):
		return failure.Errorf(failure.WriteConflict, "%s delivery %d: its address was forgotten", action, id)
	case action == "resend" && row.Status == review.DeliveryWaived:
		return failure.Errorf(failure.WriteConflict, "resend delivery %d: it is waived, and its review or its last attempt may run: resend it when the review has ended", id)
	case row.Begun || row.NotificationID != nil && row.NotifiedAt == nil:
		return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s, and its mail may have been accepted", action, id, row.Status)
	}
	return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s", action, id, row.Status)
}

// DeliveryTrail returns the audit log of a row, oldest first.
func (d *DB) DeliveryTrail(ctx context.Context, id int64) ([]AuditEntry, error) {
	return d.AuditOf(ctx, deliveryObject(id))
}

func deliveryObject(id int64) string { return fmt.Sprintf("delivery:%d", id) }
