package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

const (
	// maxSendTime bounds the time from the start of an attempt to the final dot. An
	// attempt that takes longer is abandoned while it is certain that nothing was
	// sent: it must not complete after the caller has given up on it.
	maxSendTime = 2 * time.Minute
	// replyTimeout bounds connecting with sign-in and the transaction. A client that
	// gives up earlier on the reply to the final dot causes duplicates (RFC 5321
	// 4.5.3.2.6).
	replyTimeout = 10 * time.Minute
	// dialTimeout bounds one attempt to reach the host.
	dialTimeout = 30 * time.Second
	// politeTimeout bounds RSET and QUIT, whose failure costs nothing.
	politeTimeout = 5 * time.Second
)

// A Server is a mail server to which messages are sent, one recipient per message and one
// message per connection, so that a rejection concerns exactly one recipient. SMTP has no query
// for accepted messages: see [Provider].
type Server struct {
	lg            *slog.Logger
	cfg           Config
	to            endpoint
	sendLimit     time.Duration
	passwordInUse atomic.Value // string: new, old or none
	accepted      atomic.Value // string: the last recipient whose mail was accepted
}

// NewServer returns the server that cfg names. cfg was checked.
func NewServer(lg *slog.Logger, cfg Config) *Server {
	return &Server{lg: lg, cfg: cfg, to: cfg.Server.endpoint(), sendLimit: maxSendTime}
}

// SendText sends a mail of plain text that is not a digest. id is its Message-ID before the
// domain.
func (s *Server) SendText(ctx context.Context, to, id, subject, text string) error {
	from, err := mail.ParseAddress(s.cfg.From)
	if err != nil {
		return failure.Errorf(failure.ConfigInvalid, "mail.from is not a mail address")
	}
	_, err = s.send(ctx, Message{
		ID: id + "@" + s.cfg.messageIDDomain(), From: *from, To: to, Date: time.Now(), Subject: subject, Text: text,
	})
	return err
}

// Ping signs in to the mail server and names our sender, without sending. Errors
// have the class that sending would have.
func (s *Server) Ping(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err := c.Mail(envelope(s.cfg.fromAddress())); err != nil {
		return classify(ctx, stepMail, err)
	}
	quit(c)
	return nil
}

// send sends m and returns the step it reached. An error has a class of package failure: with
// DeliveryAmbiguous the message may have been accepted, with any other class it was not. The
// end of ctx closes the connection; go-mail itself observes a context only while it connects.
func (s *Server) send(ctx context.Context, m Message) (at step, err error) {
	raw, err := m.MIME()
	if err != nil {
		return stepConnect, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := cmp.Or(m.Begun, time.Now())
	late := time.AfterFunc(remaining(begun, s.sendLimit), cancel)
	inTime := func() bool { return late.Stop() && remaining(begun, s.sendLimit) > 0 }
	c, err := s.connect(ctx)
	if err != nil {
		return stepConnect, err
	}
	if utf8, _ := c.Extension("SMTPUTF8"); !utf8 && !ascii(m.To) {
		return stepConnect, failure.Errorf(failure.RecipientRejected,
			"send mail: the address is not ASCII, which the mail server does not support (no SMTPUTF8): correct or waive the recipient")
	}
	if at, err = transact(c, m, raw, inTime); err != nil {
		rejected := classify(ctx, at, err, s.to.user, m.To)
		if at == stepRcpt && s.onlyRefuses(c, m.To, err) {
			e, _ := errors.AsType[*failure.Error](rejected)
			refused := failure.Errorf(failure.RecipientRejected, "%w; it accepts another recipient on the same connection: correct or waive this one", e.Err)
			refused.Upstream = e.Upstream
			rejected = refused
		}
		return at, rejected
	}
	s.accepted.Store(m.To)
	quit(c)
	return stepDot, nil
}

// transact carries out one SMTP transaction and returns the step it reached. The
// message is sent if the error is nil: the server confirmed the final dot.
// go-mail's own Send is not used. It reports a connection lost before and after
// the dot as the same failure, and an accepted message as failed if the QUIT
// fails. inTime is called before the dot; false abandons the connection.
func transact(c *smtp.Client, m Message, raw []byte, inTime func() bool) (at step, err error) {
	// With SMTPUTF8, bounces have a type that few programs read (RFC 6533), so it
	// is requested only where needed.
	c.SkipSMTPUTF8(ascii(m.To))
	if err := c.Mail(envelope(m.From.Address)); err != nil {
		return stepMail, err
	}
	if err := c.Rcpt(envelope(m.To)); err != nil {
		return stepRcpt, err
	}
	body, err := c.Data()
	if err != nil {
		return stepData, err
	}
	if _, err := body.Write(raw); err != nil {
		return stepDot, err
	}
	if !inTime() {
		return stepData, context.DeadlineExceeded
	}
	err = body.Close()
	// Any 2yz confirms the message. textproto reports those other than 250 as errors.
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code/100 == 2 {
		err = nil
	}
	return stepDot, err
}

// onlyRefuses reports whether a refusal of RCPT that does not say whose fault it is concerns
// this recipient only: on the same connection the server accepts one whose mail it took before.
func (s *Server) onlyRefuses(c *smtp.Client, to string, refusal error) bool {
	e, ok := errors.AsType[*textproto.Error](refusal)
	other, _ := s.accepted.Load().(string)
	if !ok || other == "" || strings.EqualFold(other, to) || !newReply(stepRcpt, e.Code, e.Msg).unexplained() {
		return false
	}
	defer quit(c)
	return c.UpdateDeadline(politeTimeout) == nil && c.Reset() == nil &&
		c.Mail(envelope(s.cfg.fromAddress())) == nil && c.Rcpt(envelope(other)) == nil
}

// remaining returns what is left of limit since begun. It counts by both clocks: the
// monotonic clock stops while the machine sleeps, and the wall clock may be set.
func remaining(begun time.Time, limit time.Duration) time.Duration {
	wall := begun.Round(0) // without the monotonic reading
	return limit - max(time.Since(begun), time.Since(wall))
}

// envelope formats an address for MAIL and RCPT, quoted where needed.
func envelope(address string) string {
	return (&mail.Address{Address: address}).String()
}

// quit ends a connection whose work is done. Its failure changes nothing.
func quit(c *smtp.Client) {
	if c.UpdateDeadline(politeTimeout) == nil {
		_ = c.Quit()
	}
}

// connect returns a connection that is signed in. If the server rejects the new password, it
// signs in with the old one (security 9.3.5). It logs which one is in use when that changes.
func (s *Server) connect(ctx context.Context) (c *smtp.Client, err error) {
	passwords := s.cfg.Password.Keys()
	inUse := "none"
	for i, password := range passwords {
		if c, err = s.connectWith(ctx, password); err == nil {
			inUse = [...]string{"new", "old"}[min(i, 1)]
		}
		if err == nil || failure.ClassOf(err) != failure.AuthDenied {
			break
		}
	}
	rejected := err != nil && failure.ClassOf(err) == failure.AuthDenied
	if len(passwords) > 1 && (err == nil || rejected) && s.passwordInUse.Swap(inUse) != inUse {
		s.lg.InfoContext(ctx, "mail password in use", "password", inUse)
	}
	return c, err
}

// connectWith dials, secures the connection and signs in with password. The end of ctx closes
// the connection.
func (s *Server) connectWith(ctx context.Context, password secret.Value) (c *smtp.Client, err error) {
	tlsConfig := &tls.Config{ServerName: s.to.host, RootCAs: s.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	at := stepConnect
	tcp, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", s.to.address())
	if err != nil {
		return nil, classify(ctx, at, err)
	}
	context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer func() {
		if err != nil {
			_ = tcp.Close()
			err = classify(ctx, at, err, s.to.user, password.Reveal())
		}
	}()
	if err := tcp.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		return nil, err
	}
	conn := tcp
	if s.to.tls == tlsImplicit {
		conn = tls.Client(tcp, tlsConfig)
	}
	if c, err = smtp.NewClient(conn, s.to.host); err != nil {
		return nil, err
	}
	at = stepHello
	if err := c.Hello(s.cfg.ehloName()); err != nil {
		return nil, err
	}
	if s.to.tls != tlsImplicit && s.to.tls != tlsNone {
		if offered, _ := c.Extension("STARTTLS"); !offered {
			return nil, errors.New("the server offers no STARTTLS")
		}
		if err := c.StartTLS(tlsConfig); err != nil {
			return nil, err
		}
	}
	if s.to.user != "" {
		at = stepAuth
		auth, err := s.auth(c, password)
		if err == nil {
			err = c.Auth(auth)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, c.UpdateDeadline(replyTimeout)
}

// auth returns the way to sign in: by access token, or by the first of the mechanisms below
// that the server offers. Those that send the password need TLS.
func (s *Server) auth(c *smtp.Client, password secret.Value) (smtp.Auth, error) {
	user, pass := s.to.user, password.Reveal()
	_, offered := c.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	switch {
	case s.to.byToken && slices.Contains(mechanisms, "XOAUTH2"):
		return smtp.XOAuth2Auth(user, strings.TrimSpace(pass)), nil
	case s.to.byToken:
		return nil, errors.New("the server does not offer XOAUTH2")
	case slices.Contains(mechanisms, "SCRAM-SHA-256"):
		return smtp.ScramSHA256Auth(user, pass), nil
	case slices.Contains(mechanisms, "SCRAM-SHA-1"):
		return smtp.ScramSHA1Auth(user, pass), nil
	case s.to.tls == tlsNone:
	case slices.Contains(mechanisms, "PLAIN"):
		return smtp.PlainAuth("", user, pass, s.to.host, false), nil
	case slices.Contains(mechanisms, "LOGIN"):
		return smtp.LoginAuth(user, pass, s.to.host, false), nil
	}
	return nil, errors.New("the server offers no SCRAM, nor PLAIN or LOGIN over TLS")
}
