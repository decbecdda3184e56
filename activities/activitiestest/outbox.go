package activitiestest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// SaveRecipients fakes the recipient book.
func (w *World) SaveRecipients(_ context.Context, _ review.Changelist, _ review.Version, rs []review.Recipient) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = slices.Clone(rs)
	return w.enter("SaveRecipients")
}

// Recipients returns what was saved.
func (w *World) Recipients(context.Context, review.Changelist, review.Version) ([]review.Recipient, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.known), w.enter("Recipients")
}

// PrepareDeliveries adds the missing rows and returns all.
func (w *World) PrepareDeliveries(_ context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, address := range addresses {
		key := review.DeliveryKey{Changelist: cl, Recipient: strings.ToLower(address), Version: v}
		if !slices.ContainsFunc(w.rows, func(d review.Delivery) bool { return d.Key == key }) {
			w.rows = append(w.rows, review.Delivery{ID: int64(len(w.rows) + 1), Key: key, Status: review.DeliveryPending})
		}
	}
	return slices.Clone(w.rows), w.enter("PrepareDeliveries")
}

// Delivery returns one row.
func (w *World) Delivery(_ context.Context, id int64) (review.Delivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[id-1], w.enter("Delivery")
}

// BeginDelivery opens an attempt.
func (w *World) BeginDelivery(_ context.Context, seen review.Delivery) (review.Delivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("BeginDelivery"); err != nil {
		return review.Delivery{}, err
	}
	now := time.Now()
	row := &w.rows[seen.ID-1]
	if row.Status != review.DeliveryPending || row.Attempts != seen.Attempts {
		return review.Delivery{}, failure.Errorf(failure.WriteConflict, "begin delivery %d: it changed since it was read", seen.ID)
	}
	row.Attempts, row.LastAttemptAt, row.Begun, row.Refused = row.Attempts+1, &now, true, ""
	return *row, nil
}

// AbandonDelivery closes an attempt that was not accepted.
func (w *World) AbandonDelivery(_ context.Context, begun review.Delivery) error {
	return w.setRow("AbandonDelivery", begun.ID, func(row *review.Delivery) { row.Begun = false })
}

// MarkSent closes an attempt that was accepted.
func (w *World) MarkSent(ctx context.Context, id int64, notificationID, _ string) error {
	if ctx.Err() != nil {
		return failure.Errorf(failure.DatabaseUnavailable, "mark sent: %w", ctx.Err())
	}
	return w.setRow("MarkSent", id, func(row *review.Delivery) {
		now := time.Now()
		row.Status, row.NotificationID, row.NotifiedAt, row.Begun = review.DeliverySent, notificationID, &now, false
	})
}

// MarkDeliveryFailed closes a row for good.
func (w *World) MarkDeliveryFailed(_ context.Context, seen review.Delivery, _ failure.Class) error {
	return w.setRow("MarkDeliveryFailed", seen.ID, func(row *review.Delivery) {
		row.Status, row.Begun = review.DeliveryFailed, false
	})
}

// HoldDelivery leaves a row to the operator.
func (w *World) HoldDelivery(_ context.Context, seen review.Delivery) error {
	return w.setRow("HoldDelivery", seen.ID, func(row *review.Delivery) { row.Status = review.DeliveryHeld })
}

// NoteRefusal remembers a refusal.
func (w *World) NoteRefusal(_ context.Context, begun review.Delivery, class failure.Class) error {
	return w.setRow("NoteRefusal", begun.ID, func(row *review.Delivery) { row.Refused = string(class) })
}

func (w *World) setRow(op string, id int64, set func(*review.Delivery)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter(op); err != nil {
		return err
	}
	set(&w.rows[id-1])
	return nil
}

// Send fakes the mail provider; a fault set for "Send" means not accepted, one
// for "Send reply" means accepted but not known to the caller.
func (w *World) Send(_ context.Context, report review.Report, key review.DeliveryKey, _ time.Time) (string, error) {
	if err := w.accept(report, key); err != nil {
		return "", err
	}
	if w.afterSend != nil {
		w.afterSend()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return key.Token(), w.enter("Send reply")
}

func (w *World) accept(report review.Report, key review.DeliveryKey) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("Send"); err != nil {
		return err
	}
	w.mailed[key.Recipient]++
	w.mails = append(w.mails, report)
	return nil
}

// Lookup answers accepted for what was accepted.
func (w *World) Lookup(_ context.Context, key review.DeliveryKey, _ time.Time) (review.Evidence, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mailed[key.Recipient] > 0 {
		return review.Evidence{State: review.EvidenceAccepted, NotificationID: key.Token(), Source: "fake"}, w.enter("Lookup")
	}
	return w.evidence, w.enter("Lookup")
}

// PrepareChannels adds the missing rows of channels.
func (w *World) PrepareChannels(_ context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range channels {
		key := review.DeliveryKey{Changelist: cl, Recipient: string(c), Version: v}
		if !slices.ContainsFunc(w.rows, func(d review.Delivery) bool { return d.Key == key }) {
			w.rows = append(w.rows, review.Delivery{ID: int64(len(w.rows) + 1), Key: key, Status: review.DeliveryPending})
		}
	}
	return w.enter("PrepareChannels")
}
