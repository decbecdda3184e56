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

// An OutboxEntry is an outbox row with the review it belongs to.
type OutboxEntry struct {
	ID             int64                 `json:"id"`
	Changelist     review.Changelist     `json:"changelist"`
	Version        review.Version        `json:"review_version"`
	Recipient      string                `json:"recipient"`
	Status         review.DeliveryStatus `json:"status"`
	Attempts       int                   `json:"attempts"`
	Begun          bool                  `json:"begun"` // the result of an attempt is unknown
	LastAttemptAt  *time.Time            `json:"last_attempt_at,omitempty"`
	NotificationID string                `json:"notification_id,omitempty"`
	NotifiedAt     *time.Time            `json:"notified_at,omitempty"`
	ErrorClass     string                `json:"error_class,omitempty"`
	// Evidence names the source that reported the acceptance.
	Evidence string `json:"evidence,omitempty"`
	// CheckedAt is when reconciliation last queried the evidence sources, ConfirmedAt
	// when a source first had evidence.
	CheckedAt   *time.Time `json:"checked_at,omitempty"`
	ConfirmedAt *time.Time `json:"confirmed_at,omitempty"`
	// Unproven counts how often the row was marked sent and no source had evidence.
	Unproven int `json:"unproven,omitempty"`
	// BouncedAt is when a server refused the address. Reviews leave it out until an operator
	// sends this delivery again.
	BouncedAt  *time.Time      `json:"bounced_at,omitempty"`
	JobState   review.JobState `json:"job_state"`
	WorkflowID string          `json:"workflow_id"`
}

// A DeliveryFilter selects outbox rows. A zero field selects all, except that the
// default of Limit is 1000.
type DeliveryFilter struct {
	ID         int64
	Changelist review.Changelist
	Status     review.DeliveryStatus
	Class      failure.Class // of the failure; DELIVERY_AMBIGUOUS selects held rows
	// Since and Until bound the age of the last attempt.
	Since, Until time.Duration
	Limit        int
}

// FindDeliveries returns the rows that f selects: the newest changelist first, then
// the newest version, then by recipient.
func (d *DB) FindDeliveries(ctx context.Context, f DeliveryFilter) ([]OutboxEntry, error) {
	if f.Limit == 0 {
		f.Limit = 1000
	}
	rows, err := d.q.FindDeliveries(ctx, db.FindDeliveriesParams{
		ID: f.ID, Changelist: int64(f.Changelist), Status: string(f.Status), Class: string(f.Class), Since: f.Since, Until: f.Until, MaxRows: f.Limit,
	})
	return postgres.Convert("read deliveries", rows, err, func(row db.FindDeliveriesRow) OutboxEntry {
		d := row.Delivery
		return OutboxEntry{
			ID: d.ID, Changelist: d.ChangelistID, Version: d.ReviewVersion, Recipient: d.Recipient,
			Status: d.Status, Attempts: d.Attempts, Begun: d.Begun, LastAttemptAt: d.LastAttemptAt,
			NotificationID: postgres.OrZero(d.NotificationID), NotifiedAt: d.NotifiedAt, ErrorClass: postgres.OrZero(d.ErrorClass),
			Evidence: postgres.OrZero(d.Evidence), CheckedAt: d.CheckedAt, ConfirmedAt: d.ConfirmedAt, Unproven: d.Unproven, BouncedAt: d.BouncedAt,
			JobState: row.JobState, WorkflowID: row.JobKey,
		}
	})
}

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
		changed, err := q.RequeueUnsentDelivery(ctx, db.RequeueUnsentDeliveryParams{ID: id, Settle: settle})
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
		return unchanged(ctx, d.q, action, id)
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
		newID, err = q.InsertDelivery(ctx, db.InsertDeliveryParams{
			ChangelistID: old.ChangelistID, ReviewVersion: old.ReviewVersion, Address: address,
		})
		if postgres.NoRow(err) {
			return failure.Errorf(failure.WriteConflict,
				"readdress delivery %d: version %d of the review of changelist %d has a delivery to that address", id, old.ReviewVersion, old.ChangelistID)
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

// IsForgotten reports whether only a keyed digest of the address is left.
func (e OutboxEntry) IsForgotten() bool { return isForgotten(e.Recipient) }

func isForgotten(recipient string) bool { return strings.HasPrefix(recipient, "forgotten:") }

// unchanged returns the reason why an operator's decision changed no row.
func unchanged(ctx context.Context, q *db.Queries, action string, id int64) error {
	found, err := q.Delivery(ctx, id)
	row := found.Delivery
	switch {
	case err != nil:
		return postgres.Missing("delivery", id, err)
	case isForgotten(row.Recipient):
		return failure.Errorf(failure.WriteConflict, "%s delivery %d: its address was forgotten", action, id)
	case action == "resend" && row.Status == review.DeliveryWaived:
		return failure.Errorf(failure.WriteConflict, "resend delivery %d: it is waived, and its review or its last attempt may run: resend it when the review has ended", id)
	case row.Begun || row.NotificationID != nil && row.NotifiedAt == nil:
		return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s, and its mail may have been accepted", action, id, row.Status)
	}
	return failure.Errorf(failure.WriteConflict, "%s delivery %d: it is %s", action, id, row.Status)
}

// An AttemptRow is one attempt of a delivery.
type AttemptRow struct {
	Number  int       `json:"attempt"`
	BegunAt time.Time `json:"begun_at"`
	// EndedAt is nil while the attempt runs, and if its worker died.
	EndedAt *time.Time `json:"ended_at,omitempty"`
	// AcceptedAt is when the provider confirmed the message.
	AcceptedAt *time.Time `json:"accepted_at,omitempty"`
	review.Attempt
	Evidence string `json:"evidence,omitempty"`
}

// Attempts returns the attempts of a row, the first one first.
func (d *DB) Attempts(ctx context.Context, id int64) ([]AttemptRow, error) {
	rows, err := d.q.Attempts(ctx, id)
	return postgres.Convert("read attempts", rows, err, func(r db.AttemptsRow) AttemptRow {
		return AttemptRow{r.Attempt, r.BegunAt, r.EndedAt, r.AcceptedAt, review.Attempt{Result: r.Result, Answer: r.Answer, Detail: r.Detail}, r.Evidence}
	})
}

// A RecipientDecision is whether a person is notified of a version of a review.
type RecipientDecision struct {
	Version review.Version `json:"review_version"`
	review.Recipient
	// Why is the reason for not notifying the person; nil if stage notify has not decided yet,
	// empty if the person is notified.
	Why *string `json:"why"`
}

// RecipientDecisions returns the decisions about all versions of a changelist. They are kept
// for 30 days.
func (d *DB) RecipientDecisions(ctx context.Context, cl review.Changelist) ([]RecipientDecision, error) {
	rows, err := d.q.RecipientDecisions(ctx, cl)
	return postgres.Convert("read recipients", rows, err, func(r db.RecipientDecisionsRow) RecipientDecision {
		return RecipientDecision{r.ReviewVersion, review.Recipient{User: r.User, Address: r.Address, Role: r.Role}, r.Why}
	})
}

// A NoticeRow is the notice that a review waits for an operator.
type NoticeRow struct {
	Version    review.Version `json:"review_version"`
	NotifiedAt *time.Time     `json:"notified_at,omitempty"`
	Why        string         `json:"why,omitempty"` // why the author does not get it
}

// Notices returns the notices about the versions of a changelist.
func (d *DB) Notices(ctx context.Context, cl review.Changelist) ([]NoticeRow, error) {
	rows, err := d.q.Notices(ctx, cl)
	return postgres.Convert("read notices", rows, err, func(r db.NoticesRow) NoticeRow {
		return NoticeRow{r.ReviewVersion, r.NotifiedAt, postgres.OrZero(r.Why)}
	})
}

// DeliveryTrail returns the audit log of a row, oldest first.
func (d *DB) DeliveryTrail(ctx context.Context, id int64) ([]AuditEntry, error) {
	return d.trail(ctx, deliveryObject(id))
}

func deliveryObject(id int64) string { return fmt.Sprintf("delivery:%d", id) }
