package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A Mailbox is read for evidence by IMAP. Nothing in it is ever changed.
type Mailbox struct {
	// IMAP server with the account that may read the mailbox: imap://user@imap.example.com:143,
	// where STARTTLS is required, or imaps://, with port 993; imap+insecure:// for a server on this
	// host. Empty: the mailbox is not read. Its folder INBOX is read, in which messages must stay
	// for 30 days.
	Server ServerURL `yaml:"server"`
	// RootCAs verify the server. Default: the roots of the system.
	RootCAs *x509.CertPool
	// Password or access token of the account. During a rotation the old one is in a second line:
	// it is used if the server rejects the first.
	Password secret.Value `yaml:"password"`
}

// Check implements the checks of package config.
func (m Mailbox) Check(p *config.Problems) {
	p.Keys("password", m.Password)
	m.Server.check(p, m.Password, "imap", "imaps", "imap+insecure", inboxScheme)
}

const (
	// queryTimeout bounds one query of a mailbox, from dialing to the answer.
	queryTimeout = time.Minute
	// searchDays is how far before the last attempt a mailbox is searched: an
	// earlier attempt may have been accepted.
	searchDays = 30
	// maxMessages bounds the messages that a search finds and one query reads. A query that
	// would need more has no result.
	maxMessages = 20
)

// errTooMuch ends a query that would read more.
var errTooMuch = fmt.Errorf("more than %d messages", maxMessages)

// An openMailbox is a mailbox that is open read-only.
type openMailbox struct{ *imapclient.Client }

// open opens the mailbox for use. The end of ctx closes the connection, which
// ends every wait of the client. The error is nil if use has read too much.
func (m Mailbox) open(ctx context.Context, use func(openMailbox) error) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var client *imapclient.Client
	var err error
	for _, password := range m.Password.Keys() { // the old one if the server rejects the new one
		if client, err = m.signIn(ctx, password.Reveal()); err == nil || failure.ClassOf(err) != failure.AuthDenied {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
		return m.explain(ctx, "open the mailbox", err)
	}
	if err := use(openMailbox{client}); err != nil && !errors.Is(err, errTooMuch) {
		return m.explain(ctx, "search", err)
	}
	return nil
}

// signIn returns a connection of its own for each password: some servers end it after a rejection.
func (m Mailbox) signIn(ctx context.Context, password string) (*imapclient.Client, error) {
	client, err := m.connect(ctx)
	if err != nil {
		return nil, m.explain(ctx, "connect", err)
	}
	if to := m.Server.endpoint(); to.byToken {
		err = client.Authenticate(xoauth2{to.user, strings.TrimSpace(password)})
	} else {
		err = client.Login(to.user, password).Wait()
	}
	if err != nil {
		_ = client.Close()
		return nil, m.explain(ctx, "sign in", err)
	}
	return client, nil
}

// Ping signs in to the mailbox and opens it. Errors have the class that a look-up
// would have.
func (m *Mailbox) Ping(ctx context.Context) error {
	return m.open(ctx, func(openMailbox) error { return nil })
}

// xoauth2 is the sign-in with an access token of Gmail and Microsoft 365. go-sasl
// does not have it.
type xoauth2 struct{ username, token string }

// Start implements [sasl.Client].
func (x xoauth2) Start() (mechanism string, response []byte, err error) {
	return "XOAUTH2", []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

// Next implements [sasl.Client]. A challenge explains a rejection; the server
// sends the rejection itself after an empty response.
func (xoauth2) Next([]byte) (response []byte, err error) { return []byte{}, nil }

func (m Mailbox) connect(ctx context.Context) (client *imapclient.Client, err error) {
	to := m.Server.endpoint()
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", to.address())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	tlsConfig := &tls.Config{ServerName: to.host, RootCAs: m.RootCAs, MinVersion: tls.VersionTLS12}
	options := &imapclient.Options{TLSConfig: tlsConfig}
	switch to.tls {
	case tlsImplicit:
		client = imapclient.New(tls.Client(conn, tlsConfig), options)
	case tlsNone:
		client = imapclient.New(conn, options)
	default:
		return imapclient.NewStartTLS(conn, options)
	}
	return client, client.WaitGreeting()
}

// explain gives an error its class and omits the server's text, which may quote
// the content of the mailbox.
func (m Mailbox) explain(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err() // the connection broke because we closed it
	}
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	what := fmt.Sprintf("look up mail: %s at IMAP server %s", step, m.Server.Host())
	e, ok := errors.AsType[*imap.Error](err)
	switch {
	case !ok:
		return failure.New(unansweredClass(err), fmt.Errorf("%s: check that it is up and mail.journal and mail.bounces name it: %w", what, err))
	case !refused(err):
		return failure.Errorf(failure.UpstreamUnavailable, "%s: it asks to try again later", what)
	case step == "sign in":
		return failure.Errorf(failure.AuthDenied, "%s: it rejects the account: check the account, and its password or token", what)
	case step == "search":
		return failure.Errorf(failure.ConfigInvalid, "%s: it answered %s: use a server that searches the text of messages", what, e.Type)
	}
	return failure.Errorf(failure.ConfigInvalid, "%s: it answered %s: check the account's rights on INBOX", what, e.Type)
}

// refused reports whether a server answered with NO or BAD, and does not ask to try again.
func refused(err error) bool {
	e, ok := errors.AsType[*imap.Error](err)
	return ok && e.Code != imap.ResponseCodeUnavailable && e.Code != imap.ResponseCodeInUse && e.Code != imap.ResponseCodeServerBug
}

// search returns the messages that match the criteria and are recent enough to be
// of the last attempt or an earlier one.
func (b openMailbox) search(ref messageRef, criteria imap.SearchCriteria) ([]imap.UID, error) {
	if !ref.since.IsZero() {
		criteria.Since = ref.since.AddDate(0, 0, -searchDays)
	}
	found, err := b.UIDSearch(&criteria, nil).Wait()
	if err != nil {
		return nil, err
	}
	return found.AllUIDs(), nil
}

// fetch reads the messages that a search found. Fewer messages are an error: the server
// contradicts itself, or another client deletes messages.
func (b openMailbox) fetch(found []imap.UID, section *imap.FetchItemBodySection) ([]*imapclient.FetchMessageBuffer, error) {
	switch {
	case len(found) == 0:
		return nil, nil
	case len(found) > maxMessages:
		return nil, errTooMuch
	}
	messages, err := b.read(imap.UIDSetNum(found...), section)
	if err == nil && len(messages) < len(found) {
		err = fmt.Errorf("%d messages found and %d fetched: %w", len(found), len(messages), io.ErrUnexpectedEOF)
	}
	return messages, err
}

// read reads a section of messages, all of them: it returns an error if a message comes without it.
func (b openMailbox) read(which imap.NumSet, section *imap.FetchItemBodySection) ([]*imapclient.FetchMessageBuffer, error) {
	messages, err := b.readSome(which, section)
	if err == nil && slices.ContainsFunc(messages, func(m *imapclient.FetchMessageBuffer) bool { return m.FindBodySection(section) == nil }) {
		err = fmt.Errorf("a message was fetched without its text: %w", io.ErrUnexpectedEOF)
	}
	return messages, err
}

// readSome reads a section of messages, with their UID and time. A message may come without the
// section: some servers leave out what they cannot read (modern-email/defects#36), and go-imap
// takes the flags that a server announces in between (RFC 3501 7.4.2) for the answer.
func (b openMailbox) readSome(which imap.NumSet, section *imap.FetchItemBodySection) ([]*imapclient.FetchMessageBuffer, error) {
	return b.Fetch(which, &imap.FetchOptions{UID: true, InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
}
