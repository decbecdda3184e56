package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A Mailbox is one that evidence is read from, by IMAP. Nothing in it is ever
// changed.
type Mailbox struct {
	// Host is the IMAP server. Required.
	Host string
	// Port defaults to 143, to 993 with TLSImplicit.
	Port int
	// TLS defaults to TLSMandatory.
	TLS TLSPolicy
	// RootCAs vouch for the server. Default: those of the system.
	RootCAs *x509.CertPool
	// Username and Password sign in. Required.
	Username string
	Password secret.Value
	// TokenFile takes the place of Password as that of [Config] does. Default: none.
	TokenFile string
	// Name of the mailbox. Default: INBOX.
	Name string
}

func (m *Mailbox) withDefaults() *Mailbox {
	if m == nil {
		return nil
	}
	c := *m
	c.TLS = cmp.Or(c.TLS, TLSMandatory)
	c.Port = cmp.Or(c.Port, map[TLSPolicy]int{TLSImplicit: 993}[c.TLS], 143)
	c.Name = cmp.Or(c.Name, "INBOX")
	return &c
}

func (m *Mailbox) validate(field string) error {
	if m == nil {
		return nil
	}
	server := Config{Host: m.Host, Port: m.Port, TLS: m.TLS, Timeout: replyTimeout}
	problem := server.serverProblem()
	switch {
	case problem != "":
	case m.Username == "" || !m.Password.IsSet() && m.TokenFile == "":
		problem = "Username or Password is not set"
	case m.Password.IsSet() && m.TokenFile != "":
		problem = "Password and TokenFile are set: set one of them"
	}
	if problem != "" {
		return failure.Errorf(failure.ConfigInvalid, "mail configuration: %s: %s", field, problem)
	}
	return nil
}

const (
	// mailboxPatience bounds one question to a mailbox, from dialling to the
	// answer.
	mailboxPatience = time.Minute
	// searchDays is how far before the last attempt a mailbox is searched: an
	// earlier attempt may have left the trace.
	searchDays = 30
)

// A visit is an open, read-only mailbox.
type visit struct{ *imapclient.Client }

// visit opens the mailbox for look. The end of ctx closes the connection, which
// is what ends every wait of the client.
func (m Mailbox) visit(ctx context.Context, look func(visit) error) error {
	ctx, hangUp := context.WithTimeout(ctx, mailboxPatience)
	defer hangUp()
	client, err := m.connect(ctx)
	if err != nil {
		return m.explain(ctx, "connect", err)
	}
	defer func() { _ = client.Close() }()
	if err := m.signIn(client); err != nil {
		return m.explain(ctx, "sign in", err)
	}
	if _, err := client.Select(m.Name, &imap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
		return m.explain(ctx, "open the mailbox", err)
	}
	if err := look(visit{client}); err != nil {
		return m.explain(ctx, "search", err)
	}
	return nil
}

func (m Mailbox) signIn(client *imapclient.Client) error {
	if m.TokenFile == "" {
		return client.Login(m.Username, m.Password.Reveal()).Wait()
	}
	token, err := readToken(m.TokenFile)
	if err != nil {
		return err
	}
	return client.Authenticate(xoauth2{m.Username, token})
}

// xoauth2 is the sign-in with an access token that Gmail and Microsoft 365 take,
// as go-mail has it for SMTP.
type xoauth2 struct{ username, token string }

// Start implements [sasl.Client].
func (x xoauth2) Start() (mechanism string, response []byte, err error) {
	return "XOAUTH2", []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

// Next implements [sasl.Client]: the server has said why not, and says no when it
// is answered.
func (xoauth2) Next([]byte) (response []byte, err error) { return []byte{}, nil }

func (m Mailbox) connect(ctx context.Context) (*imapclient.Client, error) {
	address := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	tlsConfig := &tls.Config{ServerName: m.Host, RootCAs: m.RootCAs, MinVersion: tls.VersionTLS12}
	options := &imapclient.Options{TLSConfig: tlsConfig}
	var client *imapclient.Client
	switch m.TLS {
	case TLSImplicit:
		client = imapclient.New(tls.Client(conn, tlsConfig), options)
	case TLSNone:
		client = imapclient.New(conn, options)
	default:
		return imapclient.NewStartTLS(conn, options)
	}
	return client, client.WaitGreeting()
}

// explain gives an error its class and leaves out what the server wrote, which
// may quote what is in the mailbox.
func (m Mailbox) explain(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err() // the connection broke because we closed it
	}
	what := fmt.Sprintf("look up mail: %s at IMAP server %s", step, m.Host)
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	e, ok := errors.AsType[*imap.Error](err)
	switch {
	case !ok:
		return failure.New(unanswered(err), fmt.Errorf("%s: check that it is up and mail.journal and mail.bounces name it: %w", what, err))
	case e.Code == imap.ResponseCodeUnavailable || e.Code == imap.ResponseCodeInUse || e.Code == imap.ResponseCodeServerBug:
		return failure.Errorf(failure.UpstreamUnavailable, "%s: it asks to try again later", what)
	case step == "sign in":
		return failure.Errorf(failure.AuthDenied, "%s: it refuses the account: check user name and password or token", what)
	}
	return failure.Errorf(failure.ConfigInvalid, "%s: it answered %s: check the name of the mailbox and the account's rights", what, e.Type)
}

// matching returns the messages that meet the criteria and are not too old to
// be of the attempt or one before it.
func (v visit) matching(t trace, criteria imap.SearchCriteria) (imap.UIDSet, error) {
	if !t.since.IsZero() {
		criteria.Since = t.since.AddDate(0, 0, -searchDays)
	}
	found, err := v.UIDSearch(&criteria, nil).Wait()
	if err != nil {
		return nil, err
	}
	return imap.UIDSetNum(found.AllUIDs()...), nil
}

// fetch reads what a search has found. Less than that is no answer: the server is
// of two minds, or somebody deletes what we read.
func (v visit) fetch(found imap.UIDSet, options imap.FetchOptions) ([]*imapclient.FetchMessageBuffer, error) {
	messages, err := v.Fetch(found, &options).Collect()
	if uids, _ := found.Nums(); err == nil && len(messages) < len(uids) {
		err = fmt.Errorf("%d messages found and %d to be read: %w", len(uids), len(messages), io.ErrUnexpectedEOF)
	}
	return messages, err
}
