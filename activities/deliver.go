package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// deliver is the send-and-mark sequence, the only one there is
// (review-notification 6.4): re-read the row; if an earlier attempt may have
// been accepted, look it up; begin; send; mark. sent is false when the row was
// settled already.
func (n *Notifying) deliver(ctx context.Context, report review.Report, id int64) (sent bool, err error) {
	row, err := n.Outbox.Delivery(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read outbox row %d: %w", id, err)
	}
	switch {
	case row.NotifiedAt != nil || row.Status == review.DeliveryWaived:
		return false, nil
	case row.Status == review.DeliveryFailed:
		return false, failure.Errorf(failure.RecipientRejected, "outbox row %d was refused for good", id)
	case row.Status == review.DeliveryHeld:
		return false, held(id)
	}
	post, err := n.postFor(row)
	if err != nil {
		return false, err
	}
	if row.Begun || row.NotificationID != "" {
		if settled, err := n.reconcile(ctx, row); settled || err != nil {
			return false, err
		}
	}
	begun := time.Now() // not later than what the row says, however long that takes
	if row, err = n.Outbox.BeginDelivery(ctx, row); err != nil {
		return false, fmt.Errorf("begin outbox row %d: %w", id, err)
	}
	notificationID, err := post.Send(ctx, report, row.Key, begun)
	ctx, done := afterAll(ctx)
	defer done()
	if err != nil {
		return false, n.settleFailure(ctx, row, err)
	}
	if err := n.Outbox.MarkSent(ctx, id, notificationID, "accepted"); err != nil {
		return false, fmt.Errorf("mark outbox row %d sent: %w", id, err)
	}
	return true, nil
}

// afterAll is ctx for writing down what has happened: also when the attempt has
// been told to end meanwhile, and a worker that stops waits for that.
func afterAll(ctx context.Context) (context.Context, context.CancelFunc) {
	const patience = 10 * time.Second
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// reconcile asks the provider about an attempt whose end is unknown
// (review-notification 8.2). settled means there is nothing left to send.
func (n *Notifying) reconcile(ctx context.Context, row review.Delivery) (settled bool, err error) {
	evidence, err := n.lookUp(ctx, row)
	if err != nil {
		return false, err
	}
	switch evidence.State {
	case review.EvidenceAccepted:
		if err := n.Outbox.MarkSent(ctx, row.ID, evidence.NotificationID, evidence.Source); err != nil {
			return false, fmt.Errorf("mark outbox row %d sent: %w", row.ID, err)
		}
		return true, nil
	case review.EvidenceRejected:
		return false, n.settleFailure(ctx, row,
			failure.Errorf(failure.RecipientRejected, "outbox row %d bounced", row.ID))
	case review.EvidenceAbsent:
		return false, n.believe(ctx, row)
	}
	if row.Refused != "" && evidence.AskAgain.IsZero() {
		return false, n.believe(ctx, row)
	}
	return false, n.leaveOpen(ctx, row, evidence.AskAgain)
}

// believe acts on a refusal of the whole message that no look-up contradicts: one
// that another attempt may cure is no reason not to send.
func (n *Notifying) believe(ctx context.Context, row review.Delivery) error {
	class := failure.Class(row.Refused)
	if class == "" || class.Retryable() {
		return nil
	}
	return n.settleFailure(ctx, row, failure.Errorf(class, "the message of outbox row %d was refused as a whole, and was not accepted", row.ID))
}

func (n *Notifying) lookUp(ctx context.Context, row review.Delivery) (review.Evidence, error) {
	var since time.Time
	if row.LastAttemptAt != nil {
		since = *row.LastAttemptAt
	}
	post, err := n.postFor(row)
	if err != nil {
		return review.Evidence{}, err
	}
	evidence, err := post.Lookup(ctx, row.Key, since)
	if err != nil {
		return review.Evidence{}, fmt.Errorf("look up outbox row %d: %w", row.ID, err)
	}
	return evidence, nil
}

// leaveOpen neither sends nor settles: it waits for evidence that may still
// come, without spending attempts on asking sooner, and holds the row for an
// operator if none ever will.
func (n *Notifying) leaveOpen(ctx context.Context, row review.Delivery, askAgain time.Time) error {
	if !askAgain.IsZero() {
		wait := failure.Errorf(failure.DeliveryAmbiguous,
			"outbox row %d: an earlier attempt may have been accepted and no evidence tells yet", row.ID)
		wait.RetryAfter = max(0, time.Until(askAgain))
		return wait
	}
	if err := n.Outbox.HoldDelivery(ctx, row); err != nil {
		return fmt.Errorf("hold outbox row %d: %w", row.ID, err)
	}
	n.Log.WarnContext(ctx, "delivery held: it may have been sent and nothing can tell",
		"changelist", int64(row.Key.Changelist), "review_version", int(row.Key.Version), "delivery", row.ID)
	return held(row.ID)
}

// held is final: another attempt finds the row as it is, until an operator has
// decided.
func held(id int64) error {
	e := failure.Errorf(failure.DeliveryAmbiguous, "outbox row %d may have been sent and is held for an operator", id)
	e.Final = true
	return e
}

// settleFailure records what a failed attempt means for its row: refused for
// good, certainly not accepted, or still open.
func (n *Notifying) settleFailure(ctx context.Context, row review.Delivery, cause error) error {
	var err error
	switch class := failure.ClassOf(cause); class {
	case failure.RecipientRejected:
		err = n.Outbox.MarkDeliveryFailed(ctx, row, class)
	case failure.Unknown:
	case failure.DeliveryAmbiguous:
		if refusal, ok := refusalIn(cause); ok {
			err = n.Outbox.NoteRefusal(ctx, row, refusal)
		}
	default:
		err = n.Outbox.AbandonDelivery(ctx, row)
	}
	if err != nil {
		// The row stays open, so the next attempt looks up before it sends.
		return errors.Join(cause, err)
	}
	return cause
}

// refusalIn is the class of what an ambiguous error is about, if it has another.
func refusalIn(ambiguous error) (failure.Class, bool) {
	outer, ok := errors.AsType[*failure.Error](ambiguous)
	if !ok {
		return "", false
	}
	inner, ok := errors.AsType[*failure.Error](outer.Err)
	if !ok || inner.Class == failure.DeliveryAmbiguous {
		return "", false
	}
	return inner.Class, true
}
