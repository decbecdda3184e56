package mail

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// EvidenceConfig selects the records that show what a mail server accepted.
type EvidenceConfig struct {
	// Journal is a mailbox that gets a copy of every message the server accepts
	// (Postfix: always_bcc). Default: none.
	Journal *Mailbox
	// Bounces is the mailbox of From, which gets the messages that could not be
	// delivered. Default: none.
	Bounces *Mailbox
	// MTALog is the log file of the server, which must be a Postfix. Default: none.
	MTALog string
	// Settle is how long after the start of an attempt absence proves nothing: the
	// server may still be processing the message. Default: 10 minutes, the time
	// that a client has to wait for a reply (RFC 5321 4.5.3.2.6).
	Settle time.Duration
	// ResendInDoubt sends a message again that may have been accepted, if no
	// evidence can be expected: a second copy is preferred to none. Default: the
	// message is held for an operator.
	ResendInDoubt bool
}

// validate rejects mailboxes in clear text and a log that cannot be read.
func (c EvidenceConfig) validate() error {
	for _, m := range []*Mailbox{c.Journal, c.Bounces} {
		if m == nil {
			continue
		}
		if err := checkTLS(m.TLS, m.Host); err != nil {
			return err
		}
	}
	if c.MTALog == "" {
		return nil
	}
	log, err := os.Open(c.MTALog)
	if err != nil {
		return configError("MTALog: %w: set a log that the account of the worker can read", err)
	}
	return log.Close()
}

// A messageRef identifies a message in the records of a server.
type messageRef struct {
	tokens            []string  // that of the last attempt first, then those under other keys
	domain            string    // end of the Message-IDs
	sender, recipient string    // bare addresses
	since             time.Time // when the last attempt started
	// covered is false if the attempt may have been signed with a key that is gone:
	// the message is then not found, and may exist.
	covered bool
}

func (c Config) messageRef(k review.DeliveryKey, since time.Time) messageRef {
	ref := messageRef{domain: c.MessageIDDomain, sender: c.fromAddress(), recipient: k.Recipient, since: since}
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

// clockSkew bounds the difference between the clocks of a mail server and ours.
const clockSkew = 15 * time.Minute

// rejectedAt returns the state for a rejection at that time. A message is not rejected
// before it is sent, so an older rejection belongs to an earlier attempt.
func (ref messageRef) rejectedAt(at time.Time) review.EvidenceState {
	if at.Before(ref.since.Add(-clockSkew)) {
		return review.EvidenceUnknown
	}
	return review.EvidenceRejected
}

// A source is a record of a mail server.
type source interface {
	name() string
	// find returns accepted, rejected or absent. It returns unknown if the record does
	// not reach back far enough to prove absence, if it is longer than find reads, if an
	// entry has the message's token with another sender or recipient, or if an earlier
	// attempt was rejected: other entries may then belong to that attempt. copies is how
	// often the message was accepted.
	find(ctx context.Context, ref messageRef) (state review.EvidenceState, copies int, err error)
}

// An EvidencedProvider sends through a mail server and looks up in its records
// whether it accepted a message.
type EvidencedProvider struct {
	*SMTPProvider
	cfg EvidenceConfig
	// bounces show rejection only, so they never prove absence. May be nil.
	bounces source
	// witnesses show whether a message was accepted.
	witnesses []source
}

// NewEvidencedProvider adds evidence to server.
func NewEvidencedProvider(server *SMTPProvider, cfg EvidenceConfig) (*EvidencedProvider, error) {
	cfg.Settle = cmp.Or(cfg.Settle, replyTimeout)
	if err := errors.Join(cfg.validate(), server.cfg.requireKeys()); err != nil {
		return nil, err
	}
	p := &EvidencedProvider{SMTPProvider: server.withSendLimit(cfg.Settle / 2), cfg: cfg}
	if cfg.Bounces != nil {
		p.bounces = bounces{*cfg.Bounces}
	}
	if cfg.MTALog != "" {
		p.witnesses = append(p.witnesses, postfixLog{cfg.MTALog})
	}
	if cfg.Journal != nil {
		p.witnesses = append(p.witnesses, journal{*cfg.Journal})
	}
	if len(p.witnesses) == 0 {
		p.lg.Warn("no evidence for mail: a message in doubt cannot be looked up; configure mail.journal or mail.mta_log",
			"resend_in_doubt", cfg.ResendInDoubt)
	}
	return p, nil
}

// Send implements [Provider]. Some servers reject a message after they have
// queued it. A rejection after the whole message was read therefore does not
// count at once: it is wrapped in an error of class DeliveryAmbiguous, and counts
// if the look-up after the settle window finds nothing.
func (p *EvidencedProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	m.Begun = cmp.Or(m.Begun, time.Now())
	at, err := p.send(ctx, m)
	if err == nil {
		return m.ID, nil
	}
	if at != stepDot || failure.ClassOf(err) == failure.DeliveryAmbiguous || len(p.witnesses) == 0 {
		return "", err
	}
	e, lookupErr := p.lookUp(ctx, messageRef{[]string{m.Key}, p.SMTPProvider.cfg.MessageIDDomain, m.From.Address, m.To, m.Begun, true})
	switch {
	case lookupErr != nil:
		p.lg.WarnContext(ctx, "mail rejected, and the look-up after it failed", "notification_id", m.ID, "error", lookupErr)
		return "", inDoubt(err, sourcePause)
	case e.State == review.EvidenceAccepted:
		p.lg.WarnContext(ctx, "mail rejected and accepted", "notification_id", m.ID, "error", err)
		return m.ID, nil
	case e.State == review.EvidenceAbsent:
		return "", err
	}
	return "", inDoubt(err, time.Until(e.AskAgain))
}

// inDoubt wraps a rejection that does not count until another look-up, after wait.
func inDoubt(rejection error, wait time.Duration) error {
	doubt := failure.Errorf(failure.DeliveryAmbiguous, "%w; the server has read the whole message, so it is looked up before that counts", rejection)
	doubt.RetryAfter = max(0, wait)
	if e, ok := errors.AsType[*failure.Error](rejection); ok {
		doubt.Upstream = e.Upstream
	}
	return doubt
}
