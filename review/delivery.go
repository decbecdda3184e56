package review

import (
	"slices"
	"time"
)

// A Channel is a way of delivering reviews. It is wire format.
type Channel string

// The channels. Mail has one recipient per address. Each other channel is one recipient,
// which has the channel's name in the outbox.
const (
	ChannelMail    Channel = "mail"
	ChannelWebhook Channel = "webhook"
	ChannelSwarm   Channel = "swarm" // P4 Code Review
)

// Channels lists the channels besides mail.
func Channels() []Channel { return []Channel{ChannelWebhook, ChannelSwarm} }

// A DeliveryKey identifies the notification of one recipient about one version of a
// review. It is unique (notification 10.2).
type DeliveryKey struct {
	Changelist Changelist
	Recipient  string // address in lower case, or the name of a channel
	Version    Version
	// Kind is empty for the review itself, or NoticeNotReviewed.
	Kind string
}

// NoticeNotReviewed is the kind of the mail that tells an author that their change waits for an
// operator.
const NoticeNotReviewed = "not_reviewed"

// A Notice is a mail to the author of a review that is dead-lettered before stage notify.
type Notice struct {
	Changelist Changelist
	Version    Version
	Stage      Stage
	Class      string
	FailedAt   time.Time
	Begun      time.Time // when its last attempt began, on the clock of the reader
	Again      bool      // the last attempt may have been accepted
}

// Channel returns the channel of the recipient. No address is the name of a channel.
func (k DeliveryKey) Channel() Channel {
	if c := Channel(k.Recipient); slices.Contains(Channels(), c) {
		return c
	}
	return ChannelMail
}

// A DeliveryStatus is the state of an outbox row.
type DeliveryStatus string

// The states of an outbox row. They are wire format.
const (
	DeliveryPending DeliveryStatus = "pending" // not sent, or not known to be sent
	DeliverySent    DeliveryStatus = "sent"    // accepted by the provider; notified_at is set
	DeliveryFailed  DeliveryStatus = "failed"  // permanently refused; needs an operator
	DeliveryHeld    DeliveryStatus = "held"    // may have been sent, without evidence; needs an operator
	DeliveryWaived  DeliveryStatus = "waived"  // an operator decided not to send it
)

// A Delivery is one outbox row.
type Delivery struct {
	ID       int64
	Key      DeliveryKey
	Status   DeliveryStatus
	Attempts int
	// LastAttemptAt is on the clock of the reader of the row.
	LastAttemptAt *time.Time
	// Begun is set while an attempt has begun and its end is unknown: the message may
	// have been sent.
	Begun bool
	// Bounced is set if a mail server refuses the recipient's address.
	Bounced bool
	// Refused is the error class of a server that refused the whole message. It counts
	// if no look-up finds the message.
	Refused        string
	NotificationID string // empty until the provider accepts the message
	NotifiedAt     *time.Time
}

// An Attempt is how an attempt of a delivery ended, without addresses (notification 8.1).
type Attempt struct {
	Result string `json:"result"`           // accepted, or the class of the failure
	Answer string `json:"answer,omitempty"` // of the provider: its code and request ID
	Detail string `json:"detail,omitempty"` // the failure
}

// Evidence is the answer of a look-up whether the provider accepted a message.
type Evidence struct {
	State EvidenceState
	// NotificationID is the provider's ID of an accepted message.
	NotificationID string
	Source         string // inbox, journal, bounce or api
	// Class is the error class of a rejected message, and Upstream the code of the server.
	Class, Upstream string
	// AskAgain is when an unknown state may change. It is zero if it never changes:
	// then an operator decides.
	AskAgain time.Time
	// Observed is set for an absent message if a record was read that would contain it.
	// Otherwise absent means only that sending again is correct.
	Observed bool
}

// An EvidenceState is the state of a message at the provider.
type EvidenceState string

// The states. During the provider's settle time a missing message is unknown, then
// absent.
const (
	EvidenceAccepted EvidenceState = "accepted"
	EvidenceRejected EvidenceState = "rejected"
	EvidenceAbsent   EvidenceState = "absent"
	EvidenceUnknown  EvidenceState = "unknown"
)

// A DueDelivery is an outbox row for reconciliation, with the facts about its review
// (notification 8.2: reconcile unsent, unfinished and sent rows with the provider).
type DueDelivery struct {
	Delivery
	JobState JobState
	// Report is the report of a succeeded review, or empty.
	Report ArtifactRef
	// OnlyNew is that of the review's [Request].
	OnlyNew bool
	// Confirmed is set once there was evidence of the mail. Later its absence means
	// nothing, because evidence expires.
	Confirmed bool
	// Evidence is the source that reported the acceptance of a sent row, empty if the row was
	// marked without any.
	Evidence string
}

// EvidenceReply is the evidence of a message that the provider confirmed itself.
const EvidenceReply = "accepted"

// A RecipientDecision is whether a person is notified of a review.
type RecipientDecision struct {
	Recipient
	// Why is the reason for not notifying the person; empty if the person is notified.
	Why string `json:"why,omitempty"`
}
