package activitiestest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// SaveRecipients stores the recipients.
func (w *World) SaveRecipients(_ context.Context, _ review.Changelist, _ review.Version, rs []review.Recipient) error {
	return w.call("SaveRecipients", func() { w.known = slices.Clone(rs) })
}

// Recipients returns what SaveRecipients stored.
func (w *World) Recipients(context.Context, review.Changelist, review.Version) (rs []review.Recipient, err error) {
	err = w.call("Recipients", func() { rs = slices.Clone(w.known) })
	return rs, err
}

// PrepareDeliveries adds missing rows and returns all.
func (w *World) PrepareDeliveries(_ context.Context, cl review.Changelist, v review.Version, addresses []string) (rows []review.Delivery, err error) {
	err = w.call("PrepareDeliveries", func() {
		for _, address := range addresses {
			w.addRow(review.DeliveryKey{Changelist: cl, Recipient: strings.ToLower(address), Version: v})
		}
		rows = slices.Clone(w.rows)
	})
	return rows, err
}

// PrepareChannels adds missing rows of channels.
func (w *World) PrepareChannels(_ context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error {
	return w.call("PrepareChannels", func() {
		for _, c := range channels {
			w.addRow(review.DeliveryKey{Changelist: cl, Recipient: string(c), Version: v})
		}
	})
}

func (w *World) addRow(key review.DeliveryKey) {
	if !slices.ContainsFunc(w.rows, func(d review.Delivery) bool { return d.Key == key }) {
		w.rows = append(w.rows, review.Delivery{ID: int64(len(w.rows) + 1), Key: key, Status: review.DeliveryPending})
	}
}

// Delivery returns one row.
func (w *World) Delivery(_ context.Context, id int64) (row review.Delivery, err error) {
	err = w.call("Delivery", func() { row = w.rows[id-1] })
	return row, err
}

// BeginDelivery begins an attempt.
func (w *World) BeginDelivery(_ context.Context, seen review.Delivery) (begun review.Delivery, err error) {
	now := time.Now()
	changed, err := w.changeRow("BeginDelivery", seen, func(row *review.Delivery) bool {
		if row.Status == review.DeliveryPending {
			row.Attempts, row.LastAttemptAt, row.Begun, row.Refused = row.Attempts+1, &now, true, ""
			begun = *row
		}
		return row.Status == review.DeliveryPending
	})
	if err == nil && !changed {
		err = failure.Errorf(failure.WriteConflict, "begin delivery %d: it changed since it was read", seen.ID)
	}
	return begun, err
}

// AbandonDelivery ends an attempt that was not accepted.
func (w *World) AbandonDelivery(_ context.Context, begun review.Delivery) error {
	_, err := w.changePending("AbandonDelivery", begun, false, func(row *review.Delivery) { row.Begun, row.Refused = false, "" })
	return err
}

// MarkSent ends an attempt that was accepted.
func (w *World) MarkSent(ctx context.Context, id int64, notificationID, _ string) error {
	if ctx.Err() != nil {
		return failure.Errorf(failure.DatabaseUnavailable, "mark sent: %w", ctx.Err())
	}
	twice := false
	err := w.setRow("MarkSent", id, func(row *review.Delivery) {
		now := time.Now()
		if row.NotifiedAt != nil {
			twice = row.NotificationID != notificationID
			return
		}
		row.Status, row.NotificationID, row.NotifiedAt, row.Begun, row.Refused = review.DeliverySent, notificationID, &now, false, ""
	})
	if twice {
		err = failure.Errorf(failure.InvariantViolated, "mark delivery %d sent: it was sent as another message", id)
	}
	return err
}

// MarkDeliveryFailed closes a begun row permanently.
func (w *World) MarkDeliveryFailed(_ context.Context, seen review.Delivery, _ failure.Class) error {
	return w.settle("MarkDeliveryFailed", seen, review.DeliveryFailed, func(row *review.Delivery) {
		row.Status, row.Begun, row.Refused = review.DeliveryFailed, false, ""
	})
}

// HoldDelivery holds a begun row.
func (w *World) HoldDelivery(_ context.Context, seen review.Delivery) error {
	return w.settle("HoldDelivery", seen, review.DeliveryHeld, func(row *review.Delivery) { row.Status = review.DeliveryHeld })
}

// settle changes a row that is as seen, unless it has the wanted status.
func (w *World) settle(op string, seen review.Delivery, want review.DeliveryStatus, change func(*review.Delivery)) error {
	status, err := w.changePending(op, seen, true, change)
	if err == nil && status != want {
		err = failure.Errorf(failure.WriteConflict, "%s %d: it changed since it was read and is %s", op, seen.ID, status)
	}
	return err
}

// RecordRefusal records a refusal.
func (w *World) RecordRefusal(_ context.Context, begun review.Delivery, class failure.Class) error {
	_, err := w.changePending("RecordRefusal", begun, true, func(row *review.Delivery) { row.Refused = string(class) })
	return err
}

// changePending changes a pending row whose last attempt is the one seen, and returns the
// row's status. If mustBegin is set, the attempt must not have ended.
func (w *World) changePending(op string, seen review.Delivery, mustBegin bool, change func(*review.Delivery)) (status review.DeliveryStatus, err error) {
	err = w.setRow(op, seen.ID, func(row *review.Delivery) {
		if row.Status == review.DeliveryPending && row.Attempts == seen.Attempts && (row.Begun || !mustBegin) {
			change(row)
		}
		status = row.Status
	})
	return status, err
}

func (w *World) setRow(op string, id int64, set func(*review.Delivery)) error {
	return w.call(op, func() { set(&w.rows[id-1]) })
}

// Send implements the mail provider. A fault of "Send" means that the message was not
// accepted; one of "Send reply" that it was accepted and the caller gets an error.
func (w *World) Send(_ context.Context, report review.Report, key review.DeliveryKey, _ time.Time) (string, error) {
	err := w.call("Send", func() {
		w.mailed[key.Recipient]++
		w.mails = append(w.mails, report)
	})
	if err != nil {
		return "", err
	}
	if w.afterSend != nil {
		w.afterSend()
	}
	return fmt.Sprint("message of ", key), w.call("Send reply", nil)
}

// Lookup returns the evidence of an accepted message, or that of [World.SetEvidence].
func (w *World) Lookup(_ context.Context, key review.DeliveryKey, _ time.Time) (e review.Evidence, err error) {
	err = w.call("Lookup", func() {
		e = w.evidence
		if w.mailed[key.Recipient] > 0 {
			e = review.Evidence{State: review.EvidenceAccepted, NotificationID: fmt.Sprint("message of ", key), Source: "fake"}
		}
	})
	return e, err
}
