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
	"strconv"
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
	// replyTimeout bounds connecting with sign-in, and then the transaction. A
	// client that gives up earlier on the reply to the final dot causes duplicates
	// (RFC 5321 4.5.3.2.6).
	replyTimeout = 10 * time.Minute
	// idleTimeout is how long a connection is kept for the next message: long
	// enough for the next recipient of a review, and shorter than the idle limit
	// of any server.
	idleTimeout = time.Second
	// maxIdle bounds the connections that are kept.
	maxIdle = 16
	// messagesPerSession is below the limit of any known server.
	messagesPerSession = 50
	// dialTimeout bounds one attempt to reach the host.
	dialTimeout = 30 * time.Second
	// politeTimeout bounds RSET and QUIT, whose failure costs nothing.
	politeTimeout = 5 * time.Second
)

// An SMTPProvider sends through a mail server, one recipient per message, so
// that a rejection concerns exactly one recipient. Consecutive messages share a
// connection. SMTP has no query for accepted messages: see [EvidencedProvider].
type SMTPProvider struct {
	lg            *slog.Logger
	cfg           Config
	sendLimit     time.Duration
	passwordInUse *atomic.Value // string: new, old or none
	accepted      *atomic.Value // string: the last recipient whose mail was accepted
	idle          chan *session
}

// NewSMTPProvider returns a provider for the server cfg names.
func NewSMTPProvider(lg *slog.Logger, cfg Config) (*SMTPProvider, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &SMTPProvider{lg, cfg, maxSendTime, &atomic.Value{}, &atomic.Value{}, make(chan *session, maxIdle)}, nil
}

// withSendLimit returns p with a shorter time to the final dot.
func (p *SMTPProvider) withSendLimit(limit time.Duration) *SMTPProvider {
	q := *p
	q.sendLimit = min(limit, p.sendLimit)
	return &q
}

// Send sends m. Its errors have the classes of [EvidencedProvider.Send].
func (p *SMTPProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	if _, err := p.send(ctx, m); err != nil {
		return "", err
	}
	return m.ID, nil
}

// SendText sends a mail of plain text that is not a digest. id is its Message-ID before the
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
		return err
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
		return stepConnect, err
	}
	if utf8, _ := s.Extension("SMTPUTF8"); !utf8 && !ascii(m.To) {
		return stepConnect, failure.Errorf(failure.RecipientRejected,
			"send mail: the address is not ASCII, which the mail server does not support (no SMTPUTF8): correct or waive the recipient")
	}
	at, err = s.transact(m, raw, inTime)
	if at == stepMail && s.carried > 0 {
		// The sign-in of a reused connection may have expired. Nothing was sent yet.
		if s, err = p.connect(ctx); err != nil {
			return stepConnect, err
		}
		at, err = s.transact(m, raw, inTime)
	}
	if err != nil {
		rejected := classify(ctx, at, err, p.cfg.Username, m.To)
		if at == stepRcpt && p.onlyRefuses(s, m.To, err) {
			e, _ := errors.AsType[*failure.Error](rejected)
			refused := failure.Errorf(failure.RecipientRejected, "%w; it accepts another recipient on the same connection: correct or waive this one", e.Err)
			refused.Upstream = e.Upstream
			rejected = refused
		}
		return at, rejected
	}
	p.accepted.Store(m.To)
	p.keep(s)
	return stepDot, nil
}

// onlyRefuses reports whether a refusal of RCPT that does not say whose fault it is concerns
// this recipient only: on the same connection the server accepts one whose mail it took before.
func (p *SMTPProvider) onlyRefuses(s *session, to string, refusal error) bool {
	e, ok := errors.AsType[*textproto.Error](refusal)
	other, _ := p.accepted.Load().(string)
	if !ok || other == "" || strings.EqualFold(other, to) || !newReply(stepRcpt, e.Code, e.Msg).unexplained() {
		return false
	}
	defer s.quit()
	return s.UpdateDeadline(politeTimeout) == nil && s.Reset() == nil &&
		s.Mail(envelope(p.cfg.fromAddress())) == nil && s.Rcpt(envelope(other)) == nil
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

// A session is a connection to the mail server, signed in and ready for a
// message. After a failure of any kind it is not used again.
type session struct {
	*smtp.Client
	conn    net.Conn
	release func() bool // detaches the context whose end closes conn; false if it has ended
	carried int         // messages
	retire  *time.Timer // ends an idle session
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
	err = body.Close()
	// Any 2yz confirms the message. textproto reports those other than 250 as errors.
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code/100 == 2 {
		err = nil
	}
	return stepDot, err
}

// session returns an idle connection, or connects.
func (p *SMTPProvider) session(ctx context.Context) (*session, error) {
	for {
		select {
		case s := <-p.idle:
			if s.retire.Stop() && s.reset(ctx) {
				return s, nil
			}
		default:
			return p.connect(ctx)
		}
	}
}

// attach makes the end of ctx close the connection.
func (s *session) attach(ctx context.Context) {
	s.release = context.AfterFunc(ctx, func() { _ = s.conn.Close() })
}

// reset prepares a connection for the next message and reports whether it can be
// used. The server may have closed it, or have sent an extra reply, after which
// its replies do not match the commands.
func (s *session) reset(ctx context.Context) bool {
	s.attach(ctx)
	if s.Text.R.Buffered() > 0 || s.UpdateDeadline(politeTimeout) != nil || s.Reset() != nil ||
		s.Text.R.Buffered() > 0 || s.UpdateDeadline(replyTimeout) != nil {
		_ = s.conn.Close()
		return false
	}
	return true
}

// keep keeps a connection whose message was accepted for the next message.
func (p *SMTPProvider) keep(s *session) {
	s.carried++
	if !s.release() {
		return // it is closed
	}
	if s.carried == messagesPerSession {
		s.quit()
		return
	}
	s.retire = time.AfterFunc(idleTimeout, s.quit)
	select {
	case p.idle <- s:
	default:
		if s.retire.Stop() {
			s.quit()
		}
	}
}

// quit ends a connection whose work is done. Its failure changes nothing.
func (s *session) quit() {
	if s.UpdateDeadline(politeTimeout) == nil {
		_ = s.Quit()
	}
}

// connect dials, secures the connection and signs in. If the server rejects the
// new password, it signs in with the old one (security 9.3.5). It logs which one
// is in use when that changes.
func (p *SMTPProvider) connect(ctx context.Context) (*session, error) {
	with := func(password secret.Value) (*session, error) {
		s, at, err := p.connectWith(ctx, password)
		if err != nil {
			return nil, classify(ctx, at, err, p.cfg.Username, password.Reveal())
		}
		return s, nil
	}
	rejected := func(err error) bool { return err != nil && failure.ClassOf(err) == failure.AuthDenied }
	s, err := with(p.cfg.Password)
	if !p.cfg.PasswordOld.IsSet() {
		return s, err
	}
	inUse := "new"
	if rejected(err) {
		inUse = "old"
		if s, err = with(p.cfg.PasswordOld); rejected(err) {
			inUse = "none"
		}
	}
	if (err == nil || inUse == "none") && p.passwordInUse.Swap(inUse) != inUse {
		p.lg.InfoContext(ctx, "mail password in use", "password", inUse)
	}
	return s, err
}

// connectWith dials, secures the connection and signs in with password. It returns the step
// that failed. The end of ctx closes the connection.
func (p *SMTPProvider) connectWith(ctx context.Context, password secret.Value) (s *session, at step, err error) {
	tlsConfig := &tls.Config{ServerName: p.cfg.Host, RootCAs: p.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(p.cfg.Host, strconv.Itoa(p.cfg.Port)))
	if err != nil {
		return nil, stepConnect, err
	}
	s = &session{conn: conn}
	s.attach(ctx)
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		return nil, stepConnect, err
	}
	if p.cfg.TLS == TLSImplicit {
		conn = tls.Client(conn, tlsConfig)
	}
	if s.Client, err = smtp.NewClient(conn, p.cfg.Host); err != nil {
		return nil, stepConnect, err
	}
	if err := s.Hello(p.cfg.fromDomain()); err != nil {
		return nil, stepHello, err
	}
	if p.cfg.TLS != TLSImplicit && p.cfg.TLS != TLSNone {
		if offered, _ := s.Extension("STARTTLS"); !offered {
			return nil, stepHello, errors.New("the server offers no STARTTLS")
		}
		if err := s.StartTLS(tlsConfig); err != nil {
			return nil, stepHello, err
		}
	}
	if p.cfg.Username != "" {
		auth, err := p.auth(s, password)
		if err == nil {
			err = s.Auth(auth)
		}
		if err != nil {
			return nil, stepAuth, err
		}
	}
	return s, "", s.UpdateDeadline(replyTimeout)
}

// auth returns the way to sign in: by access token, or by the first of the mechanisms below
// that the server offers. Those that send the password need TLS.
func (p *SMTPProvider) auth(s *session, password secret.Value) (smtp.Auth, error) {
	user, pass := p.cfg.Username, password.Reveal()
	_, offered := s.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	switch {
	case p.cfg.TokenFile != "":
		token, err := readToken(p.cfg.TokenFile)
		if err == nil && !slices.Contains(mechanisms, "XOAUTH2") {
			err = errors.New("the server does not offer XOAUTH2")
		}
		return smtp.XOAuth2Auth(user, token), err
	case slices.Contains(mechanisms, "SCRAM-SHA-256"):
		return smtp.ScramSHA256Auth(user, pass), nil
	case slices.Contains(mechanisms, "SCRAM-SHA-1"):
		return smtp.ScramSHA1Auth(user, pass), nil
	case p.cfg.TLS == TLSNone:
	case slices.Contains(mechanisms, "PLAIN"):
		return smtp.PlainAuth("", user, pass, p.cfg.Host, false), nil
	case slices.Contains(mechanisms, "LOGIN"):
		return smtp.LoginAuth(user, pass, p.cfg.Host, false), nil
	}
	return nil, errors.New("the server offers no SCRAM, nor PLAIN or LOGIN over TLS")
}

func readToken(file string) (string, error) {
	token, err := secret.ReadFile("token_file", file)
	if err != nil {
		return "", failure.Errorf(failure.AuthDenied, "read the access token: %w", err)
	}
	return strings.TrimSpace(token.Reveal()), nil
}
