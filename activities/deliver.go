package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// deliver is the only send-and-mark sequence: re-read the row; if an earlier attempt may
// have been accepted, look it up; begin; send; mark (notification 6.4). sent is false if
// the row needed no send. Only the address of the author gets the paths of denied files.
func (n *Notifier) deliver(ctx context.Context, report review.Report, roles map[string]review.Role, id int64) (sent bool, err error) {
	row, err := n.Outbox.Delivery(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read outbox row %d: %w", id, err)
	}
	switch {
	case !isOpen(row):
		return false, nil
	case row.Status == review.DeliveryFailed:
		return false, failure.Errorf(failure.RecipientRejected, "outbox row %d was refused permanently", id)
	case row.Status == review.DeliveryHeld:
		return false, n.held(ctx, id)
	}
	post, err := n.postFor(row)
	if err != nil {
		return false, err
	}
	if row.Begun || row.NotificationID != "" {
		if settled, err := n.settle(ctx, &row); settled || err != nil {
			return false, err
		}
	}
	report.To = roles[row.Key.Recipient]
	if report.To != review.RoleAuthor {
		report = report.WithoutDeniedPaths()
	} else {
		report.ReplyTo = ""
	}
	begun := time.Now() // before the row's time, so that Send's limit on its age holds
	if row, err = n.Outbox.BeginDelivery(ctx, row); err != nil {
		return false, fmt.Errorf("begin outbox row %d: %w", id, err)
	}
	var notificationID string
	if row.Key.Channel() == review.ChannelMail && !n.Policy.allows(row.Key.Recipient) {
		err = failure.Errorf(failure.RecipientRejected, "the address of outbox row %d is outside of mail.allowed_domains", id)
	} else {
		notificationID, err = post.Send(ctx, report, row.Key, begun)
	}
	ctx, done := recordingContext(ctx)
	defer done()
	if err != nil {
		return false, n.recordFailure(ctx, row, err)
	}
	if err := n.Outbox.MarkSent(ctx, id, notificationID, review.EvidenceReply); err != nil {
		return false, fmt.Errorf("mark outbox row %d sent: %w", id, err)
	}
	return true, nil
}

// recordingContext is for recording the result of a send: it is valid even if the attempt
// was canceled meanwhile. A worker that stops waits for it.
func recordingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// settle looks up an attempt whose result is unknown (notification 8.2). settled means
// that the row needs no send. If evidence can still arrive, the next attempt waits for it, so
// that no attempt is used before that; otherwise it holds the row.
func (n *Notifier) settle(ctx context.Context, row *review.Delivery) (settled bool, err error) {
	evidence, err := n.lookUp(ctx, *row)
	if err != nil {
		return false, err
	}
	switch {
	case evidence.State == review.EvidenceAccepted:
		if err := n.Outbox.MarkSent(ctx, row.ID, evidence.NotificationID, evidence.Source); err != nil {
			return false, fmt.Errorf("mark outbox row %d sent: %w", row.ID, err)
		}
		return true, nil
	case evidence.State == review.EvidenceRejected:
		bounce := failure.Errorf(bounceClass(evidence), "outbox row %d bounced", row.ID)
		bounce.Upstream = evidence.Upstream
		return false, n.recordFailure(ctx, *row, bounce)
	case evidence.State == review.EvidenceAbsent:
		class := failure.Class(row.Refused)
		if class == "" || class.Retryable() { // a retryable refusal does not prevent a new send
			return false, nil
		}
		return false, n.recordFailure(ctx, *row, failure.Errorf(class, "the message of outbox row %d was refused as a whole, and was not accepted", row.ID))
	case !evidence.AskAgain.IsZero():
		wait := failure.Errorf(failure.DeliveryAmbiguous,
			"outbox row %d: an earlier attempt may have been accepted, and there is no evidence yet", row.ID)
		wait.RetryAfter = max(0, time.Until(evidence.AskAgain))
		return false, wait
	}
	if err := n.Outbox.HoldDelivery(ctx, *row); err != nil {
		return false, fmt.Errorf("hold outbox row %d: %w", row.ID, err)
	}
	n.Log.WarnContext(ctx, "delivery held: it may have been sent, and no evidence will come",
		"changelist", int64(row.Key.Changelist), "review_version", int(row.Key.Version), "delivery", row.ID)
	return false, n.held(ctx, row.ID)
}

// bounceClass is the class of a message that a server accepted and then rejected.
func bounceClass(e review.Evidence) failure.Class {
	return cmp.Or(failure.Class(e.Class), failure.RecipientRejected)
}

func (n *Notifier) lookUp(ctx context.Context, row review.Delivery) (review.Evidence, error) {
	var since time.Time
	switch {
	case row.LastAttemptAt != nil:
		since = *row.LastAttemptAt
	case row.NotifiedAt != nil: // marked without an attempt
		since = *row.NotifiedAt
	}
	post, err := n.postFor(row)
	if err != nil {
		return review.Evidence{}, err
	}
	evidence, err := post.Lookup(ctx, row.Key, row.NotificationID, since)
	if err != nil {
		return review.Evidence{}, fmt.Errorf("look up outbox row %d: %w", row.ID, err)
	}
	return evidence, nil
}

// held is final: until an operator has decided, another attempt would find the row held. It keeps
// the answer and the text of the first failure.
func (n *Notifier) held(ctx context.Context, id int64) error {
	first, err := n.Outbox.FirstFailure(ctx, id)
	if err != nil {
		return fmt.Errorf("read attempts of outbox row %d: %w", id, err)
	}
	e := failure.Errorf(failure.DeliveryAmbiguous, "outbox row %d may have been sent and is held for an operator; its first failure: %s",
		id, cmp.Or(first.Detail, "none was recorded, so its worker died"))
	e.Upstream, e.RequestID, _ = strings.Cut(first.Answer, " request ")
	e.Final = true
	return e
}

// recordFailure records what the failure of an attempt means for its row: permanently
// refused, certainly not accepted, or unknown.
func (n *Notifier) recordFailure(ctx context.Context, row review.Delivery, cause error) error {
	err := n.Outbox.RecordAttempt(ctx, row, attemptOf(cause))
	if err != nil {
		return errors.Join(cause, err)
	}
	if e, ok := errors.AsType[*failure.Error](cause); ok && e.Class == failure.RecipientRejected {
		row.Bounced = (e.Upstream != "" || row.Refused != "") && row.Key.Channel() == review.ChannelMail // a server said so
	}
	switch class := failure.ClassOf(cause); class {
	case failure.RecipientRejected:
		err = n.Outbox.MarkDeliveryFailed(ctx, row, class)
	case failure.Unknown:
	case failure.DeliveryAmbiguous:
		ambiguous, _ := errors.AsType[*failure.Error](cause)
		if refusal, ok := errors.AsType[*failure.Error](ambiguous.Err); ok && refusal.Class != failure.DeliveryAmbiguous {
			err = n.Outbox.RecordRefusal(ctx, row, refusal.Class)
		}
	default:
		err = n.Outbox.AbandonDelivery(ctx, row)
	}
	return errors.Join(cause, err) // with err the row stays begun: the next attempt looks up before it sends
}

// maxDetail bounds the text of a failure in the outbox, in bytes.
const maxDetail = 2000

// attemptOf describes a failed attempt. The adapters' errors contain no address.
func attemptOf(cause error) review.Attempt {
	r := failure.NewReport(cause, 1, time.Time{}, func(s string) string { return s })
	return review.Attempt{
		Result: string(r.Class), Answer: strings.TrimSuffix(r.Upstream+" request "+r.RequestID, " request "), Detail: r.Stack[:min(len(r.Stack), maxDetail)],
	}
}

// postFor returns what notifies the recipient of row. A channel that was removed from the
// configuration can still have open rows.
func (n *Notifier) postFor(row review.Delivery) (post, error) {
	name := row.Key.Channel()
	if name == review.ChannelMail {
		return n.Post, nil
	}
	for _, c := range n.Channels {
		if c.Name == name {
			return c.Post, nil
		}
	}
	return nil, failure.Errorf(failure.ConfigInvalid,
		"outbox row %d is for channel %s, which is not configured: configure it, or waive the delivery", row.ID, name)
}
