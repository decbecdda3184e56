package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/mail"
	"net/textproto"
	"os"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/secret"
)

// An SMTPProvider sends through a mail server, one connection and one
// recipient per message. SMTP keeps no record a client may ask for, so every
// look-up answers unknown; see [EvidencedProvider].
type SMTPProvider struct {
	cfg      Config
	handover time.Duration
	overlap  *overlap
}

// maxHandover is how long a message may take from the first byte of the
// connection to the final dot. After that the attempt is given up while it is
// certain that nothing was sent, so that a slow attempt never completes when
// everybody has stopped waiting for it.
const maxHandover = 2 * time.Minute

// NewSMTPProvider returns a provider for the server cfg names.
func NewSMTPProvider(lg *slog.Logger, cfg Config) (*SMTPProvider, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &SMTPProvider{cfg, maxHandover, &overlap{lg: lg}}, nil
}

// handingOverWithin is p with a shorter limit, if it is shorter.
func (p *SMTPProvider) handingOverWithin(limit time.Duration) *SMTPProvider {
	return &SMTPProvider{p.cfg, min(limit, p.handover), p.overlap}
}

// Lookup implements [Provider].
func (p *SMTPProvider) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceUnknown, Source: "smtp"}, nil
}

// Send implements [Provider]. The end of ctx closes the connection; go-mail
// itself obeys a context only until the connection stands.
func (p *SMTPProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	late := time.AfterFunc(p.handover, hangUp)
	client, err := p.connect(ctx, m)
	if err != nil {
		return "", classify(ctx, stepConnect, err)
	}
	if err := client.UpdateDeadline(p.cfg.Timeout); err != nil {
		return "", classify(ctx, stepConnect, err)
	}
	if !ascii(m.To) && !offersUTF8(client) {
		return "", failure.Errorf(failure.RecipientRejected,
			"send mail: the address is not ASCII and the mail server cannot take it (no SMTPUTF8): correct or waive the recipient")
	}
	if at, err := transact(client, m, late.Stop); err != nil {
		return "", classify(ctx, at, err)
	}
	sayGoodbye(client)
	return m.ID, nil
}

// connectWith dials, secures the connection and signs in with password.
func (p *SMTPProvider) connectWith(ctx context.Context, m Message, password secret.Value) (*smtp.Client, error) {
	tlsConfig := &tls.Config{ServerName: p.cfg.Host, RootCAs: p.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{
		gomail.WithPort(p.cfg.Port),
		gomail.WithTimeout(p.cfg.Timeout),
		gomail.WithTLSConfig(tlsConfig),
		gomail.WithDialContextFunc(p.dialer(ctx, tlsConfig)),
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
	if ascii(m.To) {
		// Otherwise bounces come as a type that few programs read (RFC 6533).
		options = append(options, gomail.WithoutSMTPUTF8())
	}
	client, err := gomail.NewClient(p.cfg.Host, options...)
	if err != nil {
		return nil, err
	}
	return client.DialToSMTPClientWithContext(ctx)
}

// signIn is how to sign in, if at all.
func (p *SMTPProvider) signIn(password secret.Value) ([]gomail.Option, error) {
	switch {
	case p.cfg.TokenFile != "":
		token, err := os.ReadFile(p.cfg.TokenFile)
		if err != nil {
			return nil, failure.Errorf(failure.AuthDenied, "read the access token: %w", err)
		}
		return []gomail.Option{
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(string(bytes.TrimSpace(token))), gomail.WithSMTPAuth(gomail.SMTPAuthXOAUTH2),
		}, nil
	case p.cfg.Username != "":
		return []gomail.Option{
			gomail.WithUsername(p.cfg.Username), gomail.WithPassword(password.Reveal()),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin),
		}, nil
	}
	return nil, nil
}

// dialTimeout bounds one attempt to reach the host.
const dialTimeout = 30 * time.Second

// dialer connects so that the end of whole closes the connection. It must not
// be bound to the context it is called with: that one ends with the dialling.
// A deadline in the past would not do, for go-mail sets deadlines of its own.
func (p *SMTPProvider) dialer(whole context.Context, tlsConfig *tls.Config) gomail.DialContextFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(whole, func() { _ = conn.Close() })
		if p.cfg.TLS == TLSImplicit {
			return tls.Client(conn, tlsConfig), nil
		}
		return conn, nil
	}
}

// transact carries out one SMTP transaction and says how far it came. The
// message counts as sent if it returns no error, which is to say that the
// server confirmed the final dot. go-mail's own Send is not used: it reports
// the same failure for a connection lost before and after the dot, and reports
// an accepted message as failed when the goodbye fails. inTime is asked before
// the dot: false means that the connection was given up.
func transact(client *smtp.Client, m Message, inTime func() bool) (at step, err error) {
	if err := client.Mail(envelope(m.From)); err != nil {
		return stepMail, err
	}
	if err := client.Rcpt(envelope(m.To)); err != nil {
		return stepRcpt, err
	}
	body, err := client.Data()
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

// sayGoodbye ends a connection whose work is done; whether that succeeds
// changes nothing.
func sayGoodbye(client *smtp.Client) {
	const patience = 5 * time.Second
	if client.UpdateDeadline(patience) == nil {
		_ = client.Quit()
	}
}

// envelope writes an address as MAIL and RCPT want it, quoted where needed.
func envelope(address string) string {
	return (&mail.Address{Address: address}).String()
}

func offersUTF8(client *smtp.Client) bool {
	ok, _ := client.Extension("SMTPUTF8")
	return ok
}
