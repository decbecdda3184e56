package mail

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

const (
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

// A session is a connection to the mail server, signed in and ready for a
// message. After a failure of any kind it is not used again.
type session struct {
	*smtp.Client
	conn    net.Conn
	release func() bool // detaches the context whose end closes conn; false if it has ended
	carried int         // messages
	retire  *time.Timer // ends an idle session
}

// attach makes the end of ctx close the connection.
func (s *session) attach(ctx context.Context) {
	s.release = context.AfterFunc(ctx, func() { _ = s.conn.Close() })
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
	s, err := p.connectWith(ctx, p.cfg.Password)
	if !p.cfg.PasswordOld.IsSet() {
		return s, err
	}
	inUse := "new"
	if signInRejected(ctx, err) {
		inUse = "old"
		if s, err = p.connectWith(ctx, p.cfg.PasswordOld); signInRejected(ctx, err) {
			inUse = "none"
		}
	}
	if (err == nil || inUse == "none") && p.passwordInUse.Swap(inUse) != inUse {
		p.lg.InfoContext(ctx, "mail password in use", "password", inUse)
	}
	return s, err
}

func signInRejected(ctx context.Context, err error) bool {
	return err != nil && failure.ClassOf(classify(ctx, stepConnect, err)) == failure.AuthDenied
}

// connectWith dials, secures the connection and signs in with password.
func (p *SMTPProvider) connectWith(ctx context.Context, password secret.Value) (*session, error) {
	s := &session{}
	tlsConfig := &tls.Config{ServerName: p.cfg.Host, RootCAs: p.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{
		gomail.WithPort(p.cfg.Port),
		gomail.WithTimeout(replyTimeout),
		gomail.WithTLSConfig(tlsConfig),
		gomail.WithDialContextFunc(p.dialer(ctx, s, tlsConfig)),
	}
	switch p.cfg.TLS {
	case TLSImplicit:
		options = append(options, gomail.WithSSL())
	case TLSNone:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	switch {
	case p.cfg.TokenFile != "":
		token, err := readToken(p.cfg.TokenFile)
		if err != nil {
			return nil, err
		}
		options = append(options,
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(token), gomail.WithSMTPAuth(gomail.SMTPAuthXOAUTH2))
	case p.cfg.Username != "":
		options = append(options,
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(password.Reveal()),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	client, err := gomail.NewClient(p.cfg.Host, options...)
	if err != nil {
		return nil, err
	}
	if s.Client, err = client.DialToSMTPClientWithContext(ctx); err != nil {
		return nil, err
	}
	return s, s.UpdateDeadline(replyTimeout)
}

func readToken(file string) (string, error) {
	token, err := secret.ReadFile("token_file", file)
	if err != nil {
		return "", failure.Errorf(failure.AuthDenied, "read the access token: %w", err)
	}
	return strings.TrimSpace(token.Reveal()), nil
}

// dialer connects so that the end of whole closes the connection. The context it
// is called with ends when go-mail has connected. A deadline in the past cannot
// close the connection: go-mail sets deadlines of its own.
func (p *SMTPProvider) dialer(whole context.Context, s *session, tlsConfig *tls.Config) gomail.DialContextFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.conn = conn
		s.attach(whole)
		if p.cfg.TLS == TLSImplicit {
			return tls.Client(conn, tlsConfig), nil
		}
		return conn, nil
	}
}

func (s *session) offersUTF8() bool {
	ok, _ := s.Extension("SMTPUTF8")
	return ok
}
