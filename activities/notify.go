package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// Notifying serves [QueueNotify]: the only stage that sends mail. It reads
// reports and keeps the outbox.
type Notifying struct {
	Log     *slog.Logger
	Reports artifactReader
	Outbox  outbox
	Post    post
	Policy  RecipientPolicy
	// Channels are told each review once, besides the people. Default: none.
	Channels []Channel
	// Feedback is where readers can answer. Default: the command line only.
	Feedback review.FeedbackLinks
}

// outbox holds one row per (changelist, recipient, review version), the unique
// intent to tell somebody (review-notification 6.3).
type outbox interface {
	Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error)
	// PrepareDeliveries adds the rows that are missing and returns all of them.
	PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error)
	// PrepareChannels adds the rows of channels other than mail that are missing.
	PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error
	Delivery(ctx context.Context, id int64) (review.Delivery, error)
	// BeginDelivery records an attempt before anything is sent. It refuses if
	// the row is no longer as it was seen: somebody else is at it.
	BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error)
	// AbandonDelivery records that the attempt begun was certainly not accepted.
	AbandonDelivery(ctx context.Context, begun review.Delivery) error
	// MarkSent sets id, time and status in a single write.
	MarkSent(ctx context.Context, id int64, notificationID, evidence string) error
	// NoteRefusal records a refusal that is not to be believed yet.
	NoteRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error
	// MarkDeliveryFailed and HoldDelivery refuse if another attempt has begun.
	MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error
	// HoldDelivery keeps the row from being sent until an operator has decided.
	HoldDelivery(ctx context.Context, seen review.Delivery) error
	versions
	ledger
}

// post sends a report to one recipient and finds out whether it was sent.
type post interface {
	// Send returns failure.DeliveryAmbiguous when the message may have been
	// accepted, and failure.RecipientRejected when this recipient never will be.
	// An ambiguous error about an error of another class says that the message was
	// refused as a whole and may have been accepted all the same.
	// It gives up, sending nothing, when the attempt began too long ago.
	Send(ctx context.Context, r review.Report, key review.DeliveryKey, begun time.Time) (notificationID string, err error)
	Lookup(ctx context.Context, key review.DeliveryKey, since time.Time) (review.Evidence, error)
}

// NotifyResult counts the outbox rows of this review.
type NotifyResult struct {
	Sent    int `json:"sent"`
	Already int `json:"already_sent"`
	// Open are the channels that are still to be told, apart from the mails.
	Open []ChannelRow `json:"open,omitempty"`
}

// Notify tells every recipient once. A recipient that is refused does not keep
// the others from being told; the error comes after all were tried. Channels that
// are told apart are named, whatever becomes of the mails.
func (n *Notifying) Notify(ctx context.Context, p StageParams) (NotifyResult, error) {
	report, chosen, err := n.compose(ctx, p)
	if err != nil {
		return NotifyResult{}, err
	}
	for _, reason := range chosen.skipped {
		n.Log.InfoContext(ctx, "recipient skipped", "changelist", int64(p.Request.Changelist), "reason", reason)
	}
	if err := n.prepareChannels(ctx, report); err != nil {
		return NotifyResult{}, err
	}
	rows, err := n.Outbox.PrepareDeliveries(ctx, report.Changelist, report.Version, chosen.addresses)
	if err != nil {
		return NotifyResult{}, fmt.Errorf("prepare outbox of changelist %d: %w", report.Changelist, err)
	}
	if !p.ChannelsApart {
		return n.deliverAll(ctx, report, rows)
	}
	mails, open := apart(rows)
	result, err := n.deliverAll(ctx, report, mails)
	if err != nil {
		return NotifyResult{}, channelsOpen{err, open}
	}
	result.Open = open
	return result, nil
}

func (n *Notifying) deliverAll(ctx context.Context, report review.Report, rows []review.Delivery) (NotifyResult, error) {
	var result NotifyResult
	var failed []error
	for _, row := range rows {
		sent, err := n.deliver(ctx, report, row.ID)
		switch {
		case err != nil:
			failed = append(failed, err)
		case sent:
			result.Sent++
		default:
			result.Already++
		}
	}
	if len(failed) == 0 {
		return result, nil
	}
	return NotifyResult{}, fmt.Errorf("notify about changelist %d: %d of %d recipients not told: %w",
		report.Changelist, len(failed), len(rows), mostHopeful(failed))
}

// mostHopeful picks the error that speaks for all: one that a retry may cure,
// if there is one, since that retry leaves alone what is settled; of those the
// one that asks for the longest wait, since the attempts are shared by all.
func mostHopeful(errs []error) error {
	best, longest := errs[0], time.Duration(-1)
	for _, err := range errs {
		var wait time.Duration
		if e, ok := errors.AsType[*failure.Error](err); ok {
			wait = e.RetryAfter
		}
		if failure.Retryable(err) && wait > longest {
			best, longest = err, wait
		}
	}
	return best
}

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
