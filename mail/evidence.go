package mail

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/criticizer/criticizer/failure"
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
			return failure.Errorf(failure.ConfigInvalid, "mail configuration: MTALog: %w", err)
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

func traceOf(m Message) trace {
	token, _, _ := strings.Cut(strings.TrimPrefix(m.ID, idPrefix), "@")
	return trace{m.ID, token, m.To, m.Begun}
}

// A source is one place where the fate of a message can be read.
type source interface {
	name() string
	// find answers accepted, rejected or absent, and unknown if it cannot see
	// far enough to call the message absent. Copies is how often it was
	// accepted.
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
// refuses it is not taken at its word: some have it in their queue by then.
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
		return "", failure.Errorf(failure.DeliveryAmbiguous, "%w, and the look-up after it failed: %w", err, blind)
	case e.State == review.EvidenceAccepted:
		p.lg.WarnContext(ctx, "mail was refused and accepted", "notification_id", m.ID, "error", err)
		return m.ID, nil
	}
	return "", err
}

// settleSoon is when nearly all evidence has come: a look-up sooner after the
// attempt waits for it.
const settleSoon = 3 * time.Second

// Lookup implements [Provider]. The rules: a bounce outranks acceptance; one
// witness of acceptance is enough; absence takes all witnesses, and the settle
// window to be over.
func (p *EvidencedProvider) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	return p.lookUp(ctx, trace{messageID(k, p.SMTPProvider.cfg.MessageIDDomain), k.Token(), k.Recipient, since})
}

func (p *EvidencedProvider) lookUp(ctx context.Context, t trace) (review.Evidence, error) {
	e, err := p.ask(ctx, t)
	if wait := settleSoon - time.Since(t.since); e.State == review.EvidenceUnknown && len(p.witnesses) > 0 && wait > 0 {
		select {
		case <-ctx.Done():
			return e, err
		case <-time.After(min(wait, settleSoon)):
			e, err = p.ask(ctx, t)
		}
	}
	return e, err
}

// ask puts the question to every source once.
func (p *EvidencedProvider) ask(ctx context.Context, t trace) (review.Evidence, error) {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	var problems []error
	if p.bounces != nil {
		state, _, err := p.bounces.find(ctx, t)
		if state == review.EvidenceRejected {
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
	case !blind, p.cfg.OnAmbiguous == AmbiguousResend:
		e.State, e.Observed = review.EvidenceAbsent, !blind
	}
	return e
}

func (p *EvidencedProvider) warnOfCopies(ctx context.Context, t trace, copies int) {
	if copies > 1 {
		p.lg.WarnContext(ctx, "mail was accepted more than once", "notification_id", t.id, "copies", copies)
	}
}

// patiently keeps the few attempts of the stage from being spent while a
// source is down.
func patiently(err error) error {
	const pause = 30 * time.Second
	e := failure.New(failure.ClassOf(err), err)
	e.RetryAfter = pause
	return e
}
