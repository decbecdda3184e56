package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Notifier serves contract.QueueNotify: the only stage that sends mail. It reads reports and
// writes the outbox.
type Notifier struct {
	Log     *slog.Logger
	Reports artifactReader
	Outbox  outbox
	Post    post
	Policy  RecipientPolicy
	// Channels are notified once per review, besides the recipients. Default: none.
	Channels []Channel
	// Answers holds the readers' answers. Default: none are read.
	Answers mailbox
	// Links lead to the code. Default: none.
	Links review.Links
}

// outbox stores one row per changelist, recipient and review version.
type outbox interface {
	Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error)
	// DecideRecipients stores who is excluded; all others are notified.
	DecideRecipients(ctx context.Context, cl review.Changelist, v review.Version, excluded []review.Excluded) error
	// Bounced returns those of the addresses that a server has refused.
	Bounced(ctx context.Context, addresses []string) ([]string, error)
	// PrepareDeliveries adds missing rows and returns all rows.
	PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error)
	// PrepareChannels adds missing rows of channels besides mail.
	PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error
	Delivery(ctx context.Context, id int64) (review.Delivery, error)
	// BeginDelivery records an attempt before the send. It fails if the row is not as
	// seen: another attempt has begun.
	BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error)
	// RecordAttempt records how an attempt ended, unless that is recorded.
	RecordAttempt(ctx context.Context, begun review.Delivery, a review.Attempt) error
	// FirstFailure returns the first attempt of a row that failed, zero if there is none.
	FirstFailure(ctx context.Context, id int64) (review.Attempt, error)
	// AbandonDelivery records that the attempt was certainly not accepted.
	AbandonDelivery(ctx context.Context, begun review.Delivery) error
	// MarkSent sets ID, time and status in a single write.
	MarkSent(ctx context.Context, id int64, notificationID, evidence string) error
	// RecordRefusal records a refusal that evidence may still contradict.
	RecordRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error
	// MarkDeliveryFailed fails if another attempt has begun.
	MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error
	// HoldDelivery blocks the row until an operator has decided. It fails if another
	// attempt has begun.
	HoldDelivery(ctx context.Context, seen review.Delivery) error
	// Dispute adds to findings who has called them wrong.
	Dispute(ctx context.Context, findings []review.Finding) error
	// RecordFeedback records a reader's answer once. Answers of others are not recorded.
	RecordFeedback(ctx context.Context, m review.FeedbackMail) (recorded bool, err error)
	versions
	reconciler
	notices
}

// mailbox is what readers answer to.
type mailbox interface {
	// Feedback returns the answers of the last days whose sender is proven. Their notes are
	// redacted.
	Feedback(ctx context.Context) ([]review.FeedbackMail, error)
}

// post sends a report to one recipient and looks up whether it was sent.
type post interface {
	// Send returns failure.DeliveryAmbiguous if the message may have been accepted, and
	// failure.RecipientRejected if this recipient never will be. An ambiguous error that
	// wraps an error of another class means: the whole message was refused with that
	// class, and may have been accepted all the same. Send fails, sending nothing, if
	// the attempt began too long ago.
	Send(ctx context.Context, r review.Report, key review.DeliveryKey, begun time.Time) (notificationID string, err error)
	// Lookup also gets the provider's ID of the message, if one is stored (notification 6.4).
	Lookup(ctx context.Context, key review.DeliveryKey, notificationID string, since time.Time) (review.Evidence, error)
}

// NotifyResult counts the mails of a review.
type NotifyResult struct {
	Sent    int `json:"sent"`
	Already int `json:"already_sent"`
	// Channels are still to be notified, by [Poster.NotifyChannel].
	Channels []review.Channel `json:"channels,omitempty"`
}

// Notify mails the review to each recipient once. It tries all recipients before it
// returns the error of one. Findings that neither a recipient nor a channel can get are an
// error.
func (n *Notifier) Notify(ctx context.Context, p StageParams) (NotifyResult, error) {
	report, chosen, err := n.compose(ctx, p)
	if err != nil {
		return NotifyResult{}, err
	}
	if err := n.Outbox.DecideRecipients(ctx, report.Changelist, report.Version, chosen.excluded); err != nil {
		return NotifyResult{}, failed(report.Changelist, "store the recipients", err)
	}
	for _, e := range chosen.excluded {
		n.Log.InfoContext(ctx, "recipient skipped", "changelist", int64(p.Request.Changelist), "reason", person(e.User)+" "+e.Why)
	}
	if !chosen.quiet {
		if err := n.prepareChannels(ctx, report); err != nil {
			return NotifyResult{}, err
		}
	}
	var result NotifyResult
	for tried := map[int64]bool{}; ; {
		rows, err := n.Outbox.PrepareDeliveries(ctx, report.Changelist, report.Version, chosen.addresses)
		if err != nil {
			return NotifyResult{}, failed(report.Changelist, "prepare outbox", err)
		}
		if len(rows) == 0 && len(report.Findings) > 0 {
			return NotifyResult{}, chosen.nobody(report)
		}
		mails, channels := splitChannels(rows)
		result.Channels = channels
		// An operator can add or reopen a row while others are sent.
		mails = slices.DeleteFunc(mails, func(row review.Delivery) bool { return tried[row.ID] && !isOpen(row) })
		if len(mails) == 0 {
			return result, nil
		}
		done, err := n.deliverAll(ctx, report, chosen.roles, mails)
		result.Sent, result.Already = result.Sent+done.Sent, result.Already+done.Already
		if err != nil {
			return result, err
		}
		for _, row := range mails {
			tried[row.ID] = true
		}
	}
}

func (n *Notifier) deliverAll(ctx context.Context, report review.Report, roles map[string]review.Role, rows []review.Delivery) (NotifyResult, error) {
	var result NotifyResult
	var failed []error
	for _, row := range rows {
		sent, err := n.deliver(ctx, report, roles, row.ID)
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
	return result, fmt.Errorf("notify about changelist %d: %d of %d recipients not notified: %w",
		report.Changelist, len(failed), len(rows), mostRetryable(failed))
}

// mostRetryable returns the error that decides about the next attempt, which all errors
// share: the retryable error with the longest Retry-After, or else the first error.
func mostRetryable(errs []error) error {
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
