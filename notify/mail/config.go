package mail

import (
	"cmp"
	"crypto/x509"
	"net"
	"net/mail"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
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

// Config selects the sender and the mail server. Package config checks which
// fields are required and go together.
type Config struct {
	// From is the sender, "Name <address>" or an address, in ASCII. Required.
	From string
	// MessageIDDomain ends every Message-ID. Changing it between two attempts
	// hides the first from a look-up. At most 20 characters. Default: the domain
	// of From.
	MessageIDDomain string
	// Zone is the time zone of times in mails. Default: UTC.
	Zone *time.Location
	// Host is the mail server. Required.
	Host string
	Port int // required
	// TLS defaults to TLSMandatory.
	TLS TLSPolicy
	// RootCAs verify the server. Default: the roots of the system.
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
	// Keys sign and identify digests. Required for digests and look-ups.
	Keys *evidence.Keys
}

func (c Config) withDefaults() Config {
	if _, domain, ok := strings.Cut(c.fromAddress(), "@"); ok {
		c.MessageIDDomain = cmp.Or(c.MessageIDDomain, domain)
	}
	c.Zone = cmp.Or(c.Zone, time.UTC)
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

// validate reports what would make mail unsafe or impossible to find again.
func (c Config) validate() error {
	switch {
	case !usableAddress(c.fromAddress()) || !ascii(c.fromAddress()):
		return configError("From is not a mail address in ASCII: want one such as Criticizer <criticizer@example.com>")
	case len(c.MessageIDDomain) > maxMessageIDDomain:
		return configError("MessageIDDomain is too long: set one of at most %d characters", maxMessageIDDomain)
	case !domainPattern.MatchString(c.MessageIDDomain):
		return configError("MessageIDDomain is not a domain: want letters, digits, dots and hyphens")
	}
	return checkTLS(c.TLS, c.Host)
}

func (c Config) requireKeys() error {
	if c.Keys == nil {
		return configError("Keys are missing: digests could not be identified")
	}
	return nil
}

// checkTLS rejects clear text to another host.
func checkTLS(policy TLSPolicy, host string) error {
	if policy == TLSNone && !loopback(host) {
		return configError("TLS is %s, which is allowed for a loopback host only: set %s or %s", TLSNone, TLSMandatory, TLSImplicit)
	}
	return nil
}

func configError(format string, args ...any) error {
	return failure.Errorf(failure.ConfigInvalid, "mail configuration: "+format, args...)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
