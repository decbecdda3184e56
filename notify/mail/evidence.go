package mail

import (
	"context"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/review"
)

// EvidenceConfig selects the records that show what a mail server accepted.
type EvidenceConfig struct {
	// Log of a Postfix on this host, read for delivery evidence together with the
	// last rotated file, FILE.1. Empty: not read.
	MTALog string `yaml:"mta_log"`
	// How long after the begin of an attempt a missing message in journal and log proves
	// nothing. The default is the time that a client waits for a reply (RFC 5321 4.5.3.2.6).
	Settle time.Duration `yaml:"settle" default:"10m" check:"positive"`
	// The mailbox, read by IMAP, to which the mail server copies every message that
	// it accepts (Postfix: always_bcc), or inbox://127.0.0.1:8025, the embedded inbox of devstack.
	Journal Mailbox `yaml:"journal"`
	// The mailbox of the sender, read by IMAP for bounces.
	Bounces Mailbox `yaml:"bounces"`
}

// Check implements the checks of package config.
func (c EvidenceConfig) Check(p *config.Problems) {
	p.Add(c.Bounces.Server.IsInbox(), "bounces.server", "is the embedded inbox, which gets no bounces", "delete it")
}

// clockSkew bounds the difference between the clocks of a mail server and ours.
const clockSkew = 15 * time.Minute

// A source is a record of a mail server.
type source interface {
	name() string
	// find returns accepted, rejected or absent. Absent needs a positive control: find sees,
	// by the same means, a message of ours from before the attempt. find returns unknown
	// without one, if the record is longer than it reads, if an entry has the message's token
	// with another sender or recipient, or if an earlier attempt was rejected: other entries
	// may then belong to that attempt.
	find(ctx context.Context, ref messageRef) (finding, error)
}

// A finding is what a source knows of a message.
type finding struct {
	state     review.EvidenceState
	copies    int   // how often the message was accepted
	rejection reply // of the server that rejected it after it was accepted
}

var unknownState = finding{state: review.EvidenceUnknown}

// rejected returns the evidence of a rejection. Its class says whose fault it is.
func (f finding) rejected(source string) review.Evidence {
	e := review.Evidence{State: f.state, Source: source}
	if f.state == review.EvidenceRejected {
		e.Class, e.Upstream = string(faults[f.rejection.rule().fault].class), f.rejection.String()
	}
	return e
}

// A messageRef identifies a message in the records of a server.
type messageRef struct {
	tokens            []string  // the token of the last attempt first, then those under other keys
	domain            string    // end of the Message-IDs
	sender, recipient string    // bare addresses
	since             time.Time // when the last attempt started
	// covered is false if the attempt may have been signed with a key that is gone:
	// the message is then not found, and may exist.
	covered bool
}

func (c Config) messageRef(k review.DeliveryKey, since time.Time) messageRef {
	ref := messageRef{domain: c.messageIDDomain(), sender: c.fromAddress(), recipient: k.Recipient, since: since}
	ref.tokens, ref.covered = c.Keys.Tokens(k, since)
	return ref
}

// id returns the Message-ID of the last attempt.
func (ref messageRef) id() string { return messageID(ref.tokens[0], ref.domain) }

// identifies reports whether key, a value of X-Criticizer-Key, or id, a Message-ID,
// belongs to the message. Each may be empty.
func (ref messageRef) identifies(key, id string) bool {
	return slices.ContainsFunc(ref.tokens, func(token string) bool {
		return key == token || id == messageID(token, ref.domain)
	})
}

// after reports whether the attempt started after a time that IMAP or a log gave in seconds.
func (ref messageRef) after(at time.Time) bool { return at.Before(ref.since.Truncate(time.Second)) }

// rejectedAt returns the state for a rejection at that time. A message is not rejected
// before it is sent, so an older rejection belongs to an earlier attempt.
func (ref messageRef) rejectedAt(at time.Time) review.EvidenceState {
	if at.Before(ref.since.Add(-clockSkew)) {
		return review.EvidenceUnknown
	}
	return review.EvidenceRejected
}
