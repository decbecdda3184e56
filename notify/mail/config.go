package mail

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"net/mail"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/post"
)

// A TLSPolicy selects how the connection to the mail server is protected. There
// is no opportunistic policy: it would fall back to clear text silently.
type TLSPolicy string

// The policies.
const (
	TLSMandatory TLSPolicy = "mandatory" // STARTTLS, or the connection is not used
	TLSImplicit  TLSPolicy = "implicit"  // TLS from the first byte
	TLSNone      TLSPolicy = "none"      // clear text; only to a loopback host
)

// replyTimeout is the shortest wait for a reply: a client that gives up earlier
// on the reply to the final dot causes duplicates (RFC 5321 4.5.3.2.6).
const replyTimeout = 10 * time.Minute

// Config selects the sender and the mail server.
type Config struct {
	// From is the sender, "Name <address>" or an address, in ASCII. Required.
	From string
	// MessageIDDomain ends every Message-ID. Changing it between two attempts
	// hides the first from a look-up. At most 20 characters. Default: the domain
	// of From.
	MessageIDDomain string
	// Host is the mail server. Required.
	Host string
	// Port defaults to 587, to 465 with TLSImplicit, to 25 with TLSNone.
	Port int
	// TLS defaults to TLSMandatory.
	TLS TLSPolicy
	// RootCAs verify the server. Default: those of the system.
	RootCAs *x509.CertPool
	// Username and Password sign in. Default: no sign-in.
	Username string
	Password secret.Value
	// PasswordOld is tried if the server rejects Password, during a rotation.
	// Default: none.
	PasswordOld secret.Value
	// TokenFile holds an OAuth2 access token, which is used in place of Password
	// (XOAUTH2). It is read for every connection, so that it can be renewed at any
	// time. Default: none.
	TokenFile string
	// Timeout bounds connecting with sign-in, and then the transaction. The
	// context of the call bounds both together. At least 10 minutes, which is
	// the default.
	Timeout time.Duration
	// InboxURL is the web address of the embedded inbox, such as
	// http://127.0.0.1:8025. Required by [NewInboxProvider] only.
	InboxURL string
}

func (c Config) withDefaults() Config {
	c.TLS = cmp.Or(c.TLS, TLSMandatory)
	c.Port = cmp.Or(c.Port, map[TLSPolicy]int{TLSImplicit: 465, TLSNone: 25}[c.TLS], 587)
	c.Timeout = cmp.Or(c.Timeout, replyTimeout)
	if _, domain, ok := strings.Cut(c.fromAddress(), "@"); ok {
		c.MessageIDDomain = cmp.Or(c.MessageIDDomain, domain)
	}
	return c
}

// fromAddress returns the bare address of From, empty if From has none.
func (c Config) fromAddress() string {
	a, err := mail.ParseAddress(c.From)
	if err != nil {
		return ""
	}
	return a.Address
}

// validate reports the first invalid field.
func (c Config) validate() error {
	return configError(cmp.Or(c.senderProblem(), c.serverProblem(), c.signInProblem()))
}

// configError returns an error about a problem, nil if there is none.
func configError(problem string) error {
	if problem == "" {
		return nil
	}
	return failure.Errorf(failure.ConfigInvalid, "mail configuration: %s", problem)
}

func (c Config) senderProblem() string {
	switch {
	case !usableAddress(c.fromAddress()) || !ascii(c.fromAddress()):
		return "From is not a mail address in ASCII: want one such as Criticizer <criticizer@example.com>"
	case len(c.MessageIDDomain) > maxMessageIDDomain:
		return fmt.Sprintf("MessageIDDomain has %d characters: set one of at most %d", len(c.MessageIDDomain), maxMessageIDDomain)
	case !domainPattern.MatchString(c.MessageIDDomain):
		return "MessageIDDomain is not a domain: want letters, digits, dots and hyphens"
	}
	return ""
}

func (c Config) serverProblem() string {
	switch {
	case c.Host == "":
		return "Host is empty: set the name of the mail server"
	case c.Port < 1 || c.Port > 65535:
		return fmt.Sprintf("Port %d is not a port: want 1 to 65535", c.Port)
	case c.TLS != TLSMandatory && c.TLS != TLSImplicit && c.TLS != TLSNone:
		return fmt.Sprintf("TLS %q is unknown: want %s, %s or %s", c.TLS, TLSMandatory, TLSImplicit, TLSNone)
	case c.TLS == TLSNone && !loopback(c.Host):
		return fmt.Sprintf("TLS is %s, which is allowed for a loopback Host only: set %s or %s", TLSNone, TLSMandatory, TLSImplicit)
	case c.Timeout < replyTimeout:
		return fmt.Sprintf("Timeout %s is under %s: a shorter wait for the server's confirmation causes duplicates", c.Timeout, replyTimeout)
	}
	return ""
}

func (c Config) signInProblem() string {
	switch {
	case c.TokenFile != "" && (c.Username == "" || c.Password.IsSet()):
		return "TokenFile requires a Username and excludes a Password"
	case c.PasswordOld.IsSet() && !c.Password.IsSet():
		return "PasswordOld is set without a Password that replaces it"
	case c.TokenFile == "" && (c.Username != "") != c.Password.IsSet():
		return "only one of Username and Password is set: set both or neither"
	}
	return ""
}

// inboxProblem reports what the inbox provider needs beyond validate.
func (c Config) inboxProblem() string {
	if post.ParseURL(c.InboxURL) == nil {
		return "InboxURL is not an http address: want one such as http://127.0.0.1:8025"
	}
	return ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
