package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

const (
	// keptFor is how long a connection is kept for the next message: long
	// enough for the next recipient of a review, and shorter than any server
	// lets a client be idle.
	keptFor = time.Second
	// messagesPerSession is fewer than any server is known to take on one
	// connection.
	messagesPerSession = 50
)

// A session is a connection to the mail server, signed in and ready to take a
// message. After a failure of any kind it is not used again.
type session struct {
	*smtp.Client
	conn    net.Conn
	release func() bool // from the context whose end closes it; false if it has
	carried int         // messages
	retire  *time.Timer // says goodbye when nobody wants it
}

// obey has the end of ctx close the connection.
func (s *session) obey(ctx context.Context) {
	s.release = context.AfterFunc(ctx, func() { _ = s.conn.Close() })
}

// session returns a connection that is there, or dials.
func (p *SMTPProvider) session(ctx context.Context) (*session, error) {
	for s := p.idle.take(); s != nil; s = p.idle.take() {
		if s.renewed(ctx, p.cfg.Timeout) {
			return s, nil
		}
	}
	return p.connect(ctx)
}

// renewed readies a connection for the next message, and reports whether it can
// be: the server may have closed it meanwhile, or have said more than it was
// asked, so that its replies no longer match.
func (s *session) renewed(ctx context.Context, timeout time.Duration) bool {
	const patience = 5 * time.Second
	s.obey(ctx)
	if s.Text.R.Buffered() > 0 || s.UpdateDeadline(patience) != nil || s.Reset() != nil ||
		s.Text.R.Buffered() > 0 || s.UpdateDeadline(timeout) != nil {
		_ = s.conn.Close()
		return false
	}
	return true
}

// keep has a connection whose message was accepted wait for the next one.
func (p *SMTPProvider) keep(s *session) {
	s.carried++
	switch {
	case !s.release(): // it is closed
	case s.carried == messagesPerSession:
		s.sayGoodbye()
	default:
		p.idle.put(s)
	}
}

// idle are the connections that wait for a message, for a short time.
type idle struct {
	mu       sync.Mutex
	sessions []*session
}

func (i *idle) put(s *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sessions = append(i.sessions, s)
	if s.retire != nil {
		s.retire.Reset(keptFor)
		return
	}
	s.retire = time.AfterFunc(keptFor, func() {
		if i.remove(s) {
			s.sayGoodbye()
		}
	})
}

// take returns the connection used last, nil if there is none.
func (i *idle) take() *session {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.sessions) == 0 {
		return nil
	}
	last := len(i.sessions) - 1
	s := i.sessions[last]
	i.sessions = i.sessions[:last]
	s.retire.Stop()
	return s
}

// remove reports whether s was there.
func (i *idle) remove(s *session) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.sessions, s)
	if at < 0 {
		return false
	}
	i.sessions = slices.Delete(i.sessions, at, at+1)
	return true
}

// connectWith dials, secures the connection and signs in with password.
func (p *SMTPProvider) connectWith(ctx context.Context, password secret.Value) (*session, error) {
	s := &session{}
	tlsConfig := &tls.Config{ServerName: p.cfg.Host, RootCAs: p.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{
		gomail.WithPort(p.cfg.Port),
		gomail.WithTimeout(p.cfg.Timeout),
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
	signIn, err := p.signIn(password)
	if err != nil {
		return nil, err
	}
	options = append(options, signIn...)
	client, err := gomail.NewClient(p.cfg.Host, options...)
	if err != nil {
		return nil, err
	}
	if s.Client, err = client.DialToSMTPClientWithContext(ctx); err != nil {
		return nil, err
	}
	return s, s.UpdateDeadline(p.cfg.Timeout)
}

// signIn is how to sign in, if at all.
func (p *SMTPProvider) signIn(password secret.Value) ([]gomail.Option, error) {
	switch {
	case p.cfg.TokenFile != "":
		token, err := readToken(p.cfg.TokenFile)
		if err != nil {
			return nil, err
		}
		return []gomail.Option{
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(token), gomail.WithSMTPAuth(gomail.SMTPAuthXOAUTH2),
		}, nil
	case p.cfg.Username != "":
		return []gomail.Option{
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(password.Reveal()),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin),
		}, nil
	}
	return nil, nil
}

// readToken reads an access token, for each connection anew.
func readToken(file string) (string, error) {
	token, err := os.ReadFile(file)
	if err != nil {
		return "", failure.Errorf(failure.AuthDenied, "read the access token: %w", err)
	}
	return string(bytes.TrimSpace(token)), nil
}

// dialTimeout bounds one attempt to reach the host.
const dialTimeout = 30 * time.Second

// dialer connects so that the end of whole closes the connection. It must not
// be bound to the context it is called with: that one ends with the dialling.
// A deadline in the past would not do, for go-mail sets deadlines of its own.
func (p *SMTPProvider) dialer(whole context.Context, s *session, tlsConfig *tls.Config) gomail.DialContextFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.conn = conn
		s.obey(whole)
		if p.cfg.TLS == TLSImplicit {
			return tls.Client(conn, tlsConfig), nil
		}
		return conn, nil
	}
}

// sayGoodbye ends a connection whose work is done; whether that succeeds
// changes nothing.
func (s *session) sayGoodbye() {
	const patience = 5 * time.Second
	if s.UpdateDeadline(patience) == nil {
		_ = s.Quit()
	}
}

func (s *session) offersUTF8() bool {
	ok, _ := s.Extension("SMTPUTF8")
	return ok
}
