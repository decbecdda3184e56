package mail

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// EvidenceConfig selects the records that show what a mail server accepted.
type EvidenceConfig struct {
	// Address of the embedded inbox, such as http://127.0.0.1:8025.
	InboxURL string `yaml:"inbox_url" check:"http-url"`
	// Log of a Postfix on this host, read for delivery evidence together with the
	// last rotated file, FILE.1. Empty: not read.
	MTALog string `yaml:"mta_log"`
	// How long after the begin of an attempt a missing message in journal and log proves
	// nothing. The default is the time that a client waits for a reply (RFC 5321 4.5.3.2.6).
	Settle time.Duration `yaml:"settle" default:"10m" check:"positive"`
	// The mailbox, read by IMAP, to which the mail server copies every message that
	// it accepts (Postfix: always_bcc).
	Journal Mailbox `yaml:"journal"`
	// The mailbox of the sender, read by IMAP for bounces.
	Bounces Mailbox `yaml:"bounces"`
}

// Connections returns the connection to the embedded inbox. The field tls protects the
// connection to a mail server.
func (c EvidenceConfig) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("inbox_url", c.InboxURL, "", secret.Value{})}
}

const (
	// inboxSettle is the settle window of the embedded inbox.
	inboxSettle = 10 * time.Second
	// secondQuery is the time between the two queries that absence requires: a server may
	// answer the first one from an index that is behind.
	secondQuery = time.Second
	// queueTime is how long a server that cannot reach a mailbox may keep a message
	// in its queue (Postfix retries after at most 67 minutes).
	queueTime = 70 * time.Minute
	// sourcePause is the retry delay while a source is down, so that a short outage
	// does not use the attempts of the stage.
	sourcePause = 30 * time.Second
	// clockSkew bounds the difference between the clocks of a mail server and ours.
	clockSkew = 15 * time.Minute
)

// An EvidencedProvider renders digests, sends them through a mail server, and looks up in its
// records whether it accepted a message.
type EvidencedProvider struct {
	*SMTPProvider
	settle time.Duration
	// bounces show rejection only, so they never prove absence. May be nil.
	bounces source
	// witnesses show whether a message was accepted.
	witnesses []source
	// showsQueue is set if a witness shows a message that is in the server's queue.
	showsQueue bool
}

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

// NewEvidencedProvider adds evidence to server. It rejects a log that cannot be read. cfg was
// checked.
func NewEvidencedProvider(server *SMTPProvider, cfg EvidenceConfig) (*EvidencedProvider, error) {
	p := &EvidencedProvider{settle: cfg.Settle, showsQueue: cfg.MTALog != "" || cfg.InboxURL != ""}
	if cfg.Bounces.Host != "" {
		p.bounces = bounces{cfg.Bounces}
	}
	if cfg.MTALog != "" {
		log, err := os.Open(cfg.MTALog)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "mail.mta_log: %w: set a log that the account of the worker can read", err)
		}
		_ = log.Close()
		p.witnesses = append(p.witnesses, postfixLog{cfg.MTALog})
	}
	if cfg.Journal.Host != "" {
		p.witnesses = append(p.witnesses, journal{cfg.Journal})
	}
	if cfg.InboxURL != "" {
		p.witnesses = append(p.witnesses, inboxRecords{cfg.InboxURL})
		p.settle = inboxSettle
	}
	server.sendLimit = min(server.sendLimit, p.settle/2) // an attempt ends before a look-up trusts absence
	p.SMTPProvider = server
	if len(p.witnesses) == 0 {
		p.lg.Warn("no evidence for mail: a message in doubt is held; configure mail.journal or mail.mta_log")
	}
	return p, nil
}

// Send renders report for the recipient of k, sends it once, in an attempt that started at
// begun, and returns the ID by which Lookup finds it. Its errors come from [Render] and
// [SMTPProvider.Send]; none contains an address.
//
// Some servers reject a message after they have queued it. A rejection after the whole
// message was read therefore does not count at once: it is wrapped in an error of class
// DeliveryAmbiguous, and counts if the look-up after the settle window finds nothing.
func (p *EvidencedProvider) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	m, err := Render(report, k, p.cfg.Keys.Token(k), p.cfg)
	if err != nil {
		return "", err
	}
	m.Begun = begun
	at, err := p.send(ctx, m)
	if err == nil {
		p.lg.InfoContext(ctx, "mail accepted",
			"changelist", int64(k.Changelist), "review_version", int(k.Version), "notification_id", m.ID, "bytes", len(m.Text)+len(m.HTML))
		return m.ID, nil
	}
	rejection, ok := errors.AsType[*failure.Error](err)
	if at != stepDot || !ok || rejection.Class == failure.DeliveryAmbiguous || len(p.witnesses) == 0 {
		return "", err
	}
	doubt := failure.Errorf(failure.DeliveryAmbiguous, "%w; the server has read the whole message, so it is looked up before that counts", err)
	doubt.Upstream, doubt.RetryAfter = rejection.Upstream, max(0, remaining(begun, p.settle))
	return "", doubt
}

// Lookup returns evidence whether the message of k was accepted (notification 8.2). since is
// when its last attempt started. The rules:
//
//   - A bounce outranks acceptance.
//   - One witness is enough for acceptance.
//   - Absence requires all witnesses, two queries, and the end of the settle
//     window.
//   - A journal does not show messages in the server's queue. If it is the only
//     witness, absence requires the time that a message may stay there.
func (p *EvidencedProvider) Lookup(ctx context.Context, k review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	ref := p.cfg.messageRef(k, since)
	e, err := p.query(ctx, ref)
	if !e.Observed {
		return e, err
	}
	select {
	case <-ctx.Done():
		return review.Evidence{State: review.EvidenceUnknown}, failure.Errorf(failure.NetworkTimeout, "look up mail: %w", ctx.Err())
	case <-time.After(secondQuery):
		return p.query(ctx, ref)
	}
}

// query asks every source once and weighs the answers.
func (p *EvidencedProvider) query(ctx context.Context, ref messageRef) (review.Evidence, error) {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	var problems []error
	if p.bounces != nil {
		found, err := p.bounces.find(ctx, ref)
		if found.state == review.EvidenceRejected || found.state == review.EvidenceUnknown && err == nil {
			return found.rejected(p.bounces.name()), nil
		}
		problems = append(problems, err)
	}
	blind := len(p.witnesses) == 0 || !ref.covered // a source could not have seen it
	for _, w := range p.witnesses {
		found, err := w.find(ctx, ref)
		switch found.state {
		case review.EvidenceRejected:
			return found.rejected(w.name()), nil
		case review.EvidenceAccepted:
			if found.copies > 1 {
				p.lg.WarnContext(ctx, "mail was accepted more than once", "notification_id", ref.id(), "copies", found.copies)
			}
			e = review.Evidence{State: found.state, Source: w.name(), NotificationID: ref.id()}
		case review.EvidenceAbsent:
		default:
			blind = true
		}
		problems = append(problems, err)
	}
	err := errors.Join(problems...)
	settled := ref.since.Add(p.settle)
	switch {
	case e.State == review.EvidenceAccepted:
	case err != nil:
		slow := failure.New(failure.ClassOf(err), err)
		slow.RetryAfter = sourcePause
		return e, slow
	case len(p.witnesses) > 0 && time.Now().Before(settled):
		e.AskAgain = settled
	case !blind && (p.showsQueue || time.Since(ref.since) > queueTime):
		e.State, e.Observed = review.EvidenceAbsent, true
	}
	return e, nil
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
