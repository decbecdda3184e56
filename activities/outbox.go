package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// outbox stores one row per changelist, recipient and review version. Its methods are those of
// store.DB, which states their contracts. A change of a row requires that it is as seen: of
// two workers, one changes nothing.
type outbox interface {
	// The people of a review, and its rows.

	Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error)
	DecideRecipients(ctx context.Context, cl review.Changelist, v review.Version, excluded []review.RecipientDecision) error
	Bounced(ctx context.Context, addresses []string) ([]string, error)
	PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error)
	PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error
	Delivery(ctx context.Context, id int64) (review.Delivery, error)

	// An attempt: it begins before the send, and ends as certainly not accepted, accepted,
	// refused as a whole (which evidence may contradict), refused for this recipient, or held.

	BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error)
	RecordAttempt(ctx context.Context, begun review.Delivery, a review.Attempt) error
	FirstFailure(ctx context.Context, id int64) (review.Attempt, error)
	AbandonDelivery(ctx context.Context, begun review.Delivery) error
	MarkSent(ctx context.Context, id int64, notificationID, evidence string) error
	RecordRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error
	MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error
	HoldDelivery(ctx context.Context, seen review.Delivery) error

	// The reports of a review, of its shelf and of the version before, and what readers say.

	AdoptOutcome(ctx context.Context, of review.Owner, report review.ArtifactRef) (bool, error)
	ReportOwner(ctx context.Context, of review.Owner, report review.ArtifactRef) (review.Owner, error)
	ReportOfReview(ctx context.Context, of review.Owner) (review.ArtifactRef, error)
	EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.EarlierReview, error)
	Dispute(ctx context.Context, findings []review.Finding) error
	RecordFeedback(ctx context.Context, m review.FeedbackMail) (recorded bool, err error)

	// Reconciliation. Each change is written to the audit log.

	DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error)
	RecordMissing(ctx context.Context, ids []int64) (missing int, err error)
	RecordCheck(ctx context.Context, id int64, confirmed bool) error
	FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (changed bool, err error)
	ReleaseDelivery(ctx context.Context, seen review.Delivery) (changed bool, err error)
	RequeueUnproven(ctx context.Context, seen review.Delivery, hold bool) (review.DeliveryStatus, error)

	// Notices to authors whose reviews wait for an operator.

	BeginNotice(ctx context.Context, openFor time.Duration) (review.Notice, bool, error)
	MarkNotice(ctx context.Context, n review.Notice, inDoubt bool) (ok bool, err error)
	PostponeNotice(ctx context.Context, n review.Notice, why string) error
	EndNotice(ctx context.Context, n review.Notice, notificationID, why string) error
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

// mailbox is what readers answer to.
type mailbox interface {
	// Feedback returns the answers of the last days whose sender is proven. Their notes are
	// redacted.
	Feedback(ctx context.Context) ([]review.FeedbackMail, error)
}
