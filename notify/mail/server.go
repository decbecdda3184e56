package mail

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// A ServerURL names a mail server and the account there, such as
// smtp://user@mail.example.com:587. The scheme says how the connection is protected.
type ServerURL string

// A tlsPolicy is how a connection is protected. An opportunistic policy is missing, because it
// would fall back to clear text silently.
type tlsPolicy string

const (
	tlsMandatory tlsPolicy = "mandatory" // STARTTLS, or the connection is not used
	tlsImplicit  tlsPolicy = "implicit"  // TLS from the first byte
	tlsNone      tlsPolicy = "none"      // clear text; only to a loopback host
)

// schemes are those of all URLs, with their default ports.
var schemes = map[string]struct {
	port string
	tls  tlsPolicy
}{
	"smtp":          {"587", tlsMandatory},
	"smtps":         {"465", tlsImplicit},
	"smtp+insecure": {"25", tlsNone},
	"imap":          {"143", tlsMandatory},
	"imaps":         {"993", tlsImplicit},
	"imap+insecure": {"143", tlsNone},
	inboxScheme:     {"8025", tlsNone},
}

// inboxScheme is the scheme of the embedded inbox, which answers over HTTP.
const inboxScheme = "inbox"

// An endpoint is what a ServerURL names.
type endpoint struct {
	scheme, host, port string
	user               string // empty: no authentication
	byToken            bool   // the password is an OAuth2 access token
	tls                tlsPolicy
}

// address returns host:port.
func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }

// endpoint returns what a URL that was checked names.
func (u ServerURL) endpoint() endpoint {
	parsed, err := url.Parse(string(u))
	if err != nil { // unreachable: it was checked
		return endpoint{}
	}
	scheme := schemes[parsed.Scheme]
	user, mechanism := account(parsed)
	return endpoint{parsed.Scheme, parsed.Hostname(), cmp.Or(parsed.Port(), scheme.port), user, mechanism == byToken, scheme.tls}
}

// account returns the account of a URL, and how to sign in if it says so, as in RFC 5092.
func account(u *url.URL) (user, mechanism string) {
	user, mechanism, _ = strings.Cut(u.User.Username(), ";")
	return user, strings.ToUpper(mechanism)
}

const byToken = "AUTH=XOAUTH2" //nolint:gosec // the name of a mechanism

// IsInbox reports whether the URL is that of the embedded inbox.
func (u ServerURL) IsInbox() bool { return u.endpoint().scheme == inboxScheme }

// Host returns the name of the server.
func (u ServerURL) Host() string { return u.endpoint().host }

// User returns the account at the server, empty if there is none.
func (u ServerURL) User() string { return u.endpoint().user }

// check refuses a URL that is set and wrong, and a password that does not fit its account.
// allowed are its schemes, the best one first.
func (u ServerURL) check(p *config.Problems, password secret.Value, allowed ...string) {
	if u == "" {
		return
	}
	if what, hint := u.problem(p.NameOf("password"), allowed); what != "" {
		p.Add(true, "server", what, hint)
		return
	}
	if u.User() == "" {
		p.Add(password.IsSet(), "server", noAccount, accountHint)
		return
	}
	p.RequireSecret("password", password, "the password or token of the account in "+p.NameOf("server"))
}

const (
	noAccount   = "names no account"
	accountHint = "write it before the host, as in user@mail.example.com, or unset its password"
	portHint    = "write 1 to 65535, or delete it"
)

// problem returns what is wrong with the URL, and a hint. They do not quote the URL, which may
// hold a password; variable is where that belongs.
func (u ServerURL) problem(variable string, allowed []string) (what, hint string) {
	such := "write one such as " + allowed[0] + "://user@mail.example.com"
	scheme, rest, found := strings.Cut(string(u), "://")
	if !found {
		return "has no scheme", such
	}
	if !slices.Contains(allowed, strings.ToLower(scheme)) {
		return "has an unknown scheme", "write one of " + strings.Join(allowed, ", ")
	}
	parsed, err := url.Parse(string(u))
	if err != nil {
		authority, _, _ := strings.Cut(rest, "/")
		_, port, _ := net.SplitHostPort(authority[strings.LastIndexByte(authority, '@')+1:])
		if _, err := strconv.Atoi(port); port != "" && err != nil {
			return "has a port that is not a number", portHint
		}
		return "is not a URL", such + ", with %5C for a backslash and %20 for a space in the account"
	}
	port, err := strconv.Atoi(cmp.Or(parsed.Port(), schemes[parsed.Scheme].port))
	_, hasPassword := parsed.User.Password()
	user, mechanism := account(parsed)
	switch {
	case hasPassword:
		return "holds a password", "delete it, and set " + variable + " or " + variable + "_FILE"
	case parsed.Hostname() == "":
		return "names no host", such
	case user == "" && (mechanism != "" || strings.HasPrefix(parsed.Scheme, "imap")):
		return noAccount, accountHint
	case mechanism != "" && mechanism != byToken:
		return "has an unknown way to sign in", "write ;" + byToken + " after the account, or nothing for a password"
	case err != nil || port < 1 || port > 65535:
		return "has a port that does not exist", portHint
	case parsed.Path != "" && parsed.Path != "/" || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return "has more than an account, a host and a port", "delete what follows them"
	case schemes[parsed.Scheme].tls == tlsNone && !config.Loopback(parsed.Hostname()):
		return "is for a server on another host and without TLS", "write " + allowed[0] + ":// or " + allowed[1] + "://"
	}
	return "", ""
}
