package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
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
