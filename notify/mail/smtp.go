package mail

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"net/textproto"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An SMTPProvider sends through a mail server, one recipient per message, so
// that every refusal is about one of them. Messages that follow each other
// share a connection. SMTP keeps no record a client may ask for, so every
// look-up answers unknown; see [EvidencedProvider].
type SMTPProvider struct {
	cfg      Config
	handover time.Duration
	overlap  *overlap
	idle     *idle
}

// maxHandover is how long a message may take from the begin of the attempt to
// the final dot. After that the attempt is given up while it is certain that
// nothing was sent, so that a slow attempt never completes when everybody has
// stopped waiting for it.
const maxHandover = 2 * time.Minute

// NewSMTPProvider returns a provider for the server cfg names.
func NewSMTPProvider(lg *slog.Logger, cfg Config) (*SMTPProvider, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &SMTPProvider{cfg, maxHandover, &overlap{lg: lg}, &idle{}}, nil
}

// handingOverWithin is p with a shorter limit, if it is shorter.
func (p *SMTPProvider) handingOverWithin(limit time.Duration) *SMTPProvider {
	return &SMTPProvider{p.cfg, min(limit, p.handover), p.overlap, p.idle}
}

// Lookup implements [Provider].
func (p *SMTPProvider) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceUnknown, Source: "smtp"}, nil
}

// Send implements [Provider].
func (p *SMTPProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	if _, err := p.handOver(ctx, m); err != nil {
		return "", err
	}
	return m.ID, nil
}

// handOver sends m and says how far it came. The end of ctx closes the
// connection; go-mail itself obeys a context only until the connection stands.
func (p *SMTPProvider) handOver(ctx context.Context, m Message) (at step, err error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	limit := newDeadline(m.Begun, p.handover)
	late := time.AfterFunc(limit.remaining(), hangUp)
	s, err := p.session(ctx)
	if err != nil {
		return stepConnect, classify(ctx, stepConnect, err)
	}
	if !ascii(m.To) && !s.offersUTF8() {
		return stepConnect, failure.Errorf(failure.RecipientRejected,
			"send mail: the address is not ASCII and the mail server cannot take it (no SMTPUTF8): correct or waive the recipient")
	}
	inTime := func() bool { return late.Stop() && limit.remaining() > 0 }
	at, err = s.transact(m, inTime)
	if at == stepMail && s.carried > 0 {
		// What it was signed in with may have run out, and nothing was said yet.
		if s, err = p.connect(ctx); err != nil {
			return stepConnect, classify(ctx, stepConnect, err)
		}
		at, err = s.transact(m, inTime)
	}
	if err != nil {
		return at, classify(ctx, at, err)
	}
	p.keep(s)
	return stepDot, nil
}

// A deadline is one by both clocks: while the machine sleeps one of them stands
// still, and the other may be set.
type deadline struct {
	begun time.Time
	limit time.Duration
}

// newDeadline counts from begun, from now on if that is zero.
func newDeadline(begun time.Time, limit time.Duration) deadline {
	if begun.IsZero() {
		begun = time.Now()
	}
	return deadline{begun, limit}
}

func (d deadline) remaining() time.Duration {
	wall := d.begun.Round(0) // has no monotonic reading
	return d.limit - max(time.Since(d.begun), time.Since(wall))
}

// transact carries out one SMTP transaction and says how far it came. The
// message counts as sent if it returns no error, which is to say that the
// server confirmed the final dot. go-mail's own Send is not used: it reports
// the same failure for a connection lost before and after the dot, and reports
// an accepted message as failed when the goodbye fails. inTime is asked before
// the dot: false means that the connection was given up.
func (s *session) transact(m Message, inTime func() bool) (at step, err error) {
	// Asked for without need, bounces come as a type that few programs read (RFC 6533).
	s.SkipSMTPUTF8(ascii(m.To))
	if err := s.Mail(envelope(m.From)); err != nil {
		return stepMail, err
	}
	if err := s.Rcpt(envelope(m.To)); err != nil {
		return stepRcpt, err
	}
	body, err := s.Data()
	if err != nil {
		return stepData, err
	}
	if _, err := body.Write(m.Raw); err != nil {
		return stepDot, err
	}
	if !inTime() {
		return stepData, context.DeadlineExceeded
	}
	if err := body.Close(); !confirms(err) {
		return stepDot, err
	}
	return stepDot, nil
}

// confirms reports whether the outcome of reading the reply to the final dot
// is any 2yz; textproto takes those other than 250 for errors.
func confirms(err error) bool {
	e, ok := errors.AsType[*textproto.Error](err)
	return err == nil || ok && e.Code/100 == 2
}

// envelope writes an address as MAIL and RCPT want it, quoted where needed.
func envelope(address string) string {
	return (&mail.Address{Address: address}).String()
}
