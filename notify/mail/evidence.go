package mail

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An OnAmbiguous says what becomes of a message that may have been accepted
// when no evidence will ever tell.
type OnAmbiguous string

// The choices.
const (
	AmbiguousHold   OnAmbiguous = "hold"   // an operator decides
	AmbiguousResend OnAmbiguous = "resend" // send again: a second copy rather than none
)

// EvidenceConfig says where to find out what a mail server accepted.
type EvidenceConfig struct {
	// Journal is a mailbox that gets a copy of every message the server
	// accepts (Postfix: always_bcc). Default: none.
	Journal *Mailbox
	// Bounces is the mailbox of From, where messages come back that could not
	// be delivered. Default: none.
	Bounces *Mailbox
	// MTALog is the file that the server, a Postfix, logs to. Default: none.
	MTALog string
	// Settle is how long after the begin of an attempt absence proves nothing:
	// the server may still be at work on it. Default: 10 minutes, the time that
	// a client has to wait for a server to be done (RFC 5321 4.5.3.2.6).
	Settle time.Duration
	// OnAmbiguous defaults to AmbiguousHold.
	OnAmbiguous OnAmbiguous
}

func (c EvidenceConfig) withDefaults() EvidenceConfig {
	c.Settle = cmp.Or(c.Settle, replyTimeout)
	c.OnAmbiguous = cmp.Or(c.OnAmbiguous, AmbiguousHold)
	c.Journal, c.Bounces = c.Journal.withDefaults(), c.Bounces.withDefaults()
	return c
}

func (c EvidenceConfig) validate() error {
	switch {
	case c.OnAmbiguous != AmbiguousHold && c.OnAmbiguous != AmbiguousResend:
		return failure.Errorf(failure.ConfigInvalid, "mail configuration: OnAmbiguous %q is unknown: want %s or %s", c.OnAmbiguous, AmbiguousHold, AmbiguousResend)
	case c.Settle < 0:
		return failure.Errorf(failure.ConfigInvalid, "mail configuration: Settle is negative")
	}
	if c.MTALog != "" {
		log, err := os.Open(c.MTALog)
		if err != nil {
			return failure.Errorf(failure.ConfigInvalid, "mail configuration: MTALog: %w: name a log that the account of the worker may read", err)
		}
		_ = log.Close()
	}
	return errors.Join(c.Journal.validate("Journal"), c.Bounces.validate("Bounces"))
}

// A trace is what a message leaves behind for a source to find.
type trace struct {
	id        string // Message-ID without angle brackets
	token     string // of the header X-Criticizer-Key
	recipient string
	since     time.Time // when the last attempt began
}

// clockSkew is how far the clocks of a mail server and ours may be apart.
const clockSkew = 15 * time.Minute

// rejectedAt is what a rejection at that time says: a message does not bounce
// before it is sent.
func (t trace) rejectedAt(at time.Time) review.EvidenceState {
	if at.Before(t.since.Add(-clockSkew)) {
		return review.EvidenceUnknown
	}
	return review.EvidenceRejected
}

func traceOf(m Message) trace {
	token, _, _ := strings.Cut(strings.TrimPrefix(m.ID, idPrefix), "@")
	return trace{m.ID, token, m.To, m.Begun}
}

// A source is one place where the fate of a message can be read.
type source interface {
	name() string
	// find answers accepted, rejected or absent, and unknown if it cannot see
	// far enough to call the message absent, or sees that an earlier attempt was
	// rejected, after which an operator had it sent again: what else is seen may
	// be of that one. Copies is how often it was accepted.
	find(ctx context.Context, t trace) (state review.EvidenceState, copies int, err error)
}

// An EvidencedProvider sends through a mail server and looks up, in what the
// server leaves behind, whether it accepted a message.
type EvidencedProvider struct {
	*SMTPProvider
	lg  *slog.Logger
	cfg EvidenceConfig
	// bounces tell of rejection alone, so they are no reason to call a message
	// absent.
	bounces source
	// witnesses tell whether a message was accepted.
	witnesses []source
}

// NewEvidencedProvider adds evidence to server.
func NewEvidencedProvider(lg *slog.Logger, server *SMTPProvider, cfg EvidenceConfig) (*EvidencedProvider, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &EvidencedProvider{SMTPProvider: server.handingOverWithin(cfg.Settle / 2), lg: lg, cfg: cfg}
	if cfg.Bounces != nil {
		p.bounces = bounces{*cfg.Bounces}
	}
	if cfg.MTALog != "" {
		p.witnesses = append(p.witnesses, mtaLog{cfg.MTALog})
	}
	if cfg.Journal != nil {
		p.witnesses = append(p.witnesses, journal{*cfg.Journal})
	}
	if len(p.witnesses) == 0 {
		lg.Warn("no source of evidence on mail: a message that may have been sent cannot be looked up; configure mail.journal or mail.mta_log",
			"on_ambiguous", string(cfg.OnAmbiguous))
	}
	return p, nil
}

// Send implements [Provider]. A server that has read the whole message and then
// refuses it is not taken at its word: some have it in their queue by then. The
// refusal is returned inside of an error of class DeliveryAmbiguous, and counts
// when the look-up after the settle window finds nothing.
func (p *EvidencedProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	m.Begun = cmp.Or(m.Begun, time.Now())
	at, err := p.handOver(ctx, m)
	if err == nil {
		return m.ID, nil
	}
	if at != stepDot || failure.ClassOf(err) == failure.DeliveryAmbiguous || len(p.witnesses) == 0 {
		return "", err
	}
	e, blind := p.lookUp(ctx, traceOf(m))
	switch {
	case blind != nil:
		p.lg.WarnContext(ctx, "mail was refused, and the look-up after it failed", "notification_id", m.ID, "error", blind)
		return "", inDoubt(err, sourcePause)
	case e.State == review.EvidenceAccepted:
		p.lg.WarnContext(ctx, "mail was refused and accepted", "notification_id", m.ID, "error", err)
		return m.ID, nil
	case e.State == review.EvidenceAbsent:
		return "", err
	}
	return "", inDoubt(err, time.Until(e.AskAgain))
}

// inDoubt is a refusal that does not count before another look-up, after a while.
func inDoubt(refusal error, wait time.Duration) error {
	doubt := failure.Errorf(failure.DeliveryAmbiguous, "%w; it has read all of it, so it is looked up before that counts", refusal)
	doubt.RetryAfter = max(0, wait)
	if e, ok := errors.AsType[*failure.Error](refusal); ok {
		doubt.Upstream = e.Upstream
	}
	return doubt
}

const (
	// settleSoon is when nearly all evidence has come: a look-up sooner after the
	// attempt waits for it.
	settleSoon = 3 * time.Second
	// secondLook is how long after the first look at absence the second one comes.
	secondLook = time.Second
	// queueTime is how long a server that cannot reach a mailbox may well keep a
	// message for it in its queue (Postfix tries again after at most 67 minutes).
	queueTime = 70 * time.Minute
)

// Lookup implements [Provider]. The rules: a bounce outranks acceptance; one
// witness of acceptance is enough; absence takes all witnesses, two looks, and
// the settle window to be over. A journal does not see what waits in the server's
// queue: if it is the only witness, absence takes as long as that may last.
func (p *EvidencedProvider) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	return p.lookUp(ctx, trace{messageID(k, p.SMTPProvider.cfg.MessageIDDomain), k.Token(), k.Recipient, since})
}

// lookUp asks the sources, and once more where evidence may come within seconds or a
// server may have answered from what it knew a moment ago.
func (p *EvidencedProvider) lookUp(ctx context.Context, t trace) (review.Evidence, error) {
	e, err := p.ask(ctx, t)
	var wait time.Duration
	switch {
	case e.State == review.EvidenceUnknown && len(p.witnesses) > 0:
		wait = min(settleSoon-time.Since(t.since), settleSoon)
	case e.Observed:
		wait = secondLook
	}
	if wait <= 0 {
		return e, err
	}
	select {
	case <-ctx.Done():
		return review.Evidence{State: review.EvidenceUnknown}, failure.Errorf(failure.NetworkTimeout, "look up mail: %w", ctx.Err())
	case <-time.After(wait):
		return p.ask(ctx, t)
	}
}

// ask puts the question to every source once.
func (p *EvidencedProvider) ask(ctx context.Context, t trace) (review.Evidence, error) {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	var problems []error
	if p.bounces != nil {
		state, _, err := p.bounces.find(ctx, t)
		if state == review.EvidenceRejected || state == review.EvidenceUnknown && err == nil {
			return review.Evidence{State: state, Source: p.bounces.name()}, nil
		}
		problems = append(problems, err)
	}
	blind := len(p.witnesses) == 0
	for _, w := range p.witnesses {
		state, copies, err := w.find(ctx, t)
		switch state {
		case review.EvidenceRejected:
			return review.Evidence{State: state, Source: w.name()}, nil
		case review.EvidenceAccepted:
			p.warnOfCopies(ctx, t, copies)
			e = review.Evidence{State: state, Source: w.name(), NotificationID: t.id}
		case review.EvidenceAbsent:
		default:
			blind = true
		}
		problems = append(problems, err)
	}
	if e.State == review.EvidenceAccepted {
		return e, nil
	}
	if err := errors.Join(problems...); err != nil {
		return e, patiently(err)
	}
	return p.withoutTrace(t, blind), nil
}

// withoutTrace judges that no source has seen the message; blind means that
// some would not have.
func (p *EvidencedProvider) withoutTrace(t trace, blind bool) review.Evidence {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	settled := t.since.Add(p.cfg.Settle)
	final := len(p.witnesses) == 0 && p.cfg.OnAmbiguous == AmbiguousHold // waiting changes nothing
	switch {
	case !final && time.Now().Before(settled):
		e.AskAgain = settled
	case !blind && (p.cfg.MTALog != "" || time.Since(t.since) > queueTime):
		e.State, e.Observed = review.EvidenceAbsent, true
	case p.cfg.OnAmbiguous == AmbiguousResend:
		e.State = review.EvidenceAbsent
	}
	return e
}

func (p *EvidencedProvider) warnOfCopies(ctx context.Context, t trace, copies int) {
	if copies > 1 {
		p.lg.WarnContext(ctx, "mail was accepted more than once", "notification_id", t.id, "copies", copies)
	}
}

// sourcePause keeps the few attempts of the stage from being spent while a
// source is down.
const sourcePause = 30 * time.Second

func patiently(err error) error {
	e := failure.New(failure.ClassOf(err), err)
	e.RetryAfter = sourcePause
	return e
}
