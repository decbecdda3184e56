package review

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// A Channel is a way by which reviews are told. It is wire format.
type Channel string

// The channels. Mail reaches people, each by an address; the others are one
// place each, whose name is its recipient in the outbox.
const (
	ChannelMail    Channel = "mail"
	ChannelWebhook Channel = "webhook"
	ChannelSwarm   Channel = "swarm" // P4 Code Review
)

// Channels lists the channels besides mail.
func Channels() []Channel { return []Channel{ChannelWebhook, ChannelSwarm} }

// A DeliveryKey is the unique intent "this recipient has been told about this
// version of this review" (review-notification 10.2).
type DeliveryKey struct {
	Changelist Changelist
	Recipient  string // address in lower case, or the name of a channel
	Version    Version
}

// Channel is the way to the recipient: no address is the name of a channel.
func (k DeliveryKey) Channel() Channel {
	switch c := Channel(k.Recipient); c {
	case ChannelWebhook, ChannelSwarm:
		return c
	}
	return ChannelMail
}

// Token is the idempotency token sent to the provider. It is a hash, so
// that it shows no address where it is logged.
func (k DeliveryKey) Token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d", k.Changelist, strings.ToLower(k.Recipient), k.Version))
	return hex.EncodeToString(sum[:16])
}

// A DeliveryStatus is the state of one outbox row.
type DeliveryStatus string

// The states of an outbox row (review-notification 6 and 8). They are wire format.
const (
	DeliveryPending DeliveryStatus = "pending" // not sent, or not known to be sent
	DeliverySent    DeliveryStatus = "sent"    // accepted by the provider; notified_at is set
	DeliveryFailed  DeliveryStatus = "failed"  // refused for good; wants an operator
	DeliveryHeld    DeliveryStatus = "held"    // may have been sent, no evidence; wants an operator
	DeliveryWaived  DeliveryStatus = "waived"  // an operator decided that it need not be sent
)

// A Delivery is one outbox row.
type Delivery struct {
	ID       int64
	Key      DeliveryKey
	Status   DeliveryStatus
	Attempts int
	// LastAttemptAt is by the clock of who read the row.
	LastAttemptAt *time.Time
	// Begun is set while an attempt was begun and nothing is known of its end:
	// the message may have been sent.
	Begun bool
	// Refused is set with Begun if the message was refused after all of it was
	// read: the class of the error. That counts once no look-up has found it.
	Refused        string
	NotificationID string // empty until the provider accepted
	NotifiedAt     *time.Time
}

// Evidence is a provider's answer to "did you accept this message?".
type Evidence struct {
	State EvidenceState
	// NotificationID is the provider's id of the message, if State is accepted.
	NotificationID string
	Source         string // who says so: inbox, journal, bounce, api
	// AskAgain is when a State of unknown may have become another. Zero if it
	// never will: then only an operator can tell.
	AskAgain time.Time
	// Observed is set of a State of absent if a record that would hold the
	// message was read and does not. Otherwise it says no more than that
	// sending again is right.
	Observed bool
}

// An EvidenceState is one of four answers; a look-up is never yes or no.
type EvidenceState string

// The answers of a look-up. Absent is only given after the provider's settle
// window; before that the answer is unknown.
const (
	EvidenceAccepted EvidenceState = "accepted"
	EvidenceRejected EvidenceState = "rejected"
	EvidenceAbsent   EvidenceState = "absent"
	EvidenceUnknown  EvidenceState = "unknown"
)
