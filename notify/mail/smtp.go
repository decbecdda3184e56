package mail

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// An SMTPProvider sends through a mail server, one recipient per message, so
// that a rejection concerns exactly one recipient. Consecutive messages share a
// connection. SMTP has no query for accepted messages, so it is no [Provider] without
// evidence.
type SMTPProvider struct {
	lg            *slog.Logger
	cfg           Config
	sendLimit     time.Duration
	passwordInUse *atomic.Value // string: new, old or none
	idle          chan *session
}

// maxSendTime bounds the time from the start of an attempt to the final dot. An
// attempt that takes longer is abandoned while it is certain that nothing was
// sent: it must not complete after the caller has given up on it.
const maxSendTime = 2 * time.Minute

// NewSMTPProvider returns a provider for the server cfg names.
func NewSMTPProvider(lg *slog.Logger, cfg Config) (*SMTPProvider, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &SMTPProvider{lg, cfg, maxSendTime, &atomic.Value{}, make(chan *session, maxIdle)}, nil
}

// withSendLimit returns p with a shorter time to the final dot.
func (p *SMTPProvider) withSendLimit(limit time.Duration) *SMTPProvider {
	q := *p
	q.sendLimit = min(limit, p.sendLimit)
	return &q
}

// Send is [Provider.Send].
func (p *SMTPProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	if _, err := p.send(ctx, m); err != nil {
		return "", err
	}
	return m.ID, nil
}

// SendText sends a mail of plain text that is no digest. id is its Message-ID before the
// domain.
func (p *SMTPProvider) SendText(ctx context.Context, to, id, subject, text string) error {
	from, err := mail.ParseAddress(p.cfg.From)
	if err != nil {
		return configError("From is not a mail address")
	}
	_, err = p.Send(ctx, Message{
		ID: id + "@" + p.cfg.MessageIDDomain, From: *from, To: to, Date: time.Now(), Subject: subject, Text: text,
	})
	return err
}

// Ping signs in to the mail server and names our sender, without sending. Errors
// have the class that sending would have.
func (p *SMTPProvider) Ping(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := p.connect(ctx)
	if err != nil {
		return classify(ctx, stepConnect, err)
	}
	if err := s.Mail(envelope(p.cfg.fromAddress())); err != nil {
		return classify(ctx, stepMail, err)
	}
	s.quit()
	return nil
}

// send sends m and returns the step it reached. The end of ctx closes the
// connection; go-mail itself observes a context only while it connects.
func (p *SMTPProvider) send(ctx context.Context, m Message) (at step, err error) {
	raw, err := m.MIME()
	if err != nil {
		return stepConnect, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := cmp.Or(m.Begun, time.Now())
	late := time.AfterFunc(remaining(begun, p.sendLimit), cancel)
	inTime := func() bool { return late.Stop() && remaining(begun, p.sendLimit) > 0 }
	s, err := p.session(ctx)
	if err != nil {
		return stepConnect, classify(ctx, stepConnect, err)
	}
	if !ascii(m.To) && !s.offersUTF8() {
		return stepConnect, failure.Errorf(failure.RecipientRejected,
			"send mail: the address is not ASCII, which the mail server does not support (no SMTPUTF8): correct or waive the recipient")
	}
	at, err = s.transact(m, raw, inTime)
	if at == stepMail && s.carried > 0 {
		// The sign-in of a reused connection may have expired. Nothing was sent yet.
		if s, err = p.connect(ctx); err != nil {
			return stepConnect, classify(ctx, stepConnect, err)
		}
		at, err = s.transact(m, raw, inTime)
	}
	if err != nil {
		return at, classify(ctx, at, err)
	}
	p.keep(s)
	return stepDot, nil
}

// remaining returns what is left of limit since begun. It counts by both clocks: the
// monotonic clock stops while the machine sleeps, and the wall clock may be set.
func remaining(begun time.Time, limit time.Duration) time.Duration {
	wall := begun.Round(0) // without the monotonic reading
	return limit - max(time.Since(begun), time.Since(wall))
}

// transact carries out one SMTP transaction and returns the step it reached. The
// message is sent if the error is nil: the server confirmed the final dot.
// go-mail's own Send is not used. It reports a connection lost before and after
// the dot as the same failure, and an accepted message as failed if the QUIT
// fails. inTime is called before the dot; false abandons the connection.
func (s *session) transact(m Message, raw []byte, inTime func() bool) (at step, err error) {
	// With SMTPUTF8, bounces have a type that few programs read (RFC 6533), so it
	// is requested only where needed.
	s.SkipSMTPUTF8(ascii(m.To))
	if err := s.Mail(envelope(m.From.Address)); err != nil {
		return stepMail, err
	}
	if err := s.Rcpt(envelope(m.To)); err != nil {
		return stepRcpt, err
	}
	body, err := s.Data()
	if err != nil {
		return stepData, err
	}
	if _, err := body.Write(raw); err != nil {
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

// confirms reports whether err, from reading the reply to the final dot, is any
// 2yz: textproto reports those other than 250 as errors.
func confirms(err error) bool {
	e, ok := errors.AsType[*textproto.Error](err)
	return err == nil || ok && e.Code/100 == 2
}

// envelope formats an address for MAIL and RCPT, quoted where needed.
func envelope(address string) string {
	return (&mail.Address{Address: address}).String()
}
