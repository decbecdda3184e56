package mail

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/mail"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
)

// Config selects the sender and the mail server.
type Config struct {
	// Mail server: smtp://user@mail.example.com:587, where STARTTLS is required, or smtps://, with
	// TLS from the first byte and port 465. A server on this host may be smtp+insecure://localhost:25.
	// The account before the @ may be a mail address. Without one, the worker does not sign in.
	// After user;AUTH=XOAUTH2 the password is an OAuth2 access token.
	Server ServerURL `yaml:"server" required:"the mail server, such as smtp://user@mail.example.com"`
	// RootCAs verify the server. Default: the roots of the system.
	RootCAs *x509.CertPool
	// Sender: an address in ASCII, or a name followed by the address in angle brackets.
	From string `yaml:"from" required:"the sender, such as Criticizer <criticizer@example.com>"`
	// Domain of Message-IDs, at most 20 characters. Empty: the domain of from. Change it only
	// while no delivery is open.
	MessageIDDomain string `yaml:"message_id_domain"`
	// Name by which the worker introduces itself to the mail server (EHLO): a domain, or an
	// address such as [192.0.2.5]. Empty: the domain of from.
	EHLOName string `yaml:"ehlo_name"`
	// Password or access token of the account, required with one. During a rotation the old one is
	// in a second line: it is used if the server rejects the first.
	Password secret.Value `yaml:"password" env:"CRITICIZER_SMTP_PASSWORD"`
	// Name of the receiving mail server in Authentication-Results, such as mx.example.com. If it
	// is set, each finding has links by which the reader answers by mail, to the mailbox
	// mail.bounces. Only answers whose sender this server has verified count (docs/findings.md).
	FeedbackRelay string `yaml:"feedback_relay"`
	// Where readers unsubscribe, for List-Unsubscribe: a mail address, or an https page that takes
	// one click (RFC 8058), such as https://example.com/unsubscribe?who={recipient}, with the
	// address of the reader in place of {recipient}. Empty: not offered.
	Unsubscribe string `yaml:"unsubscribe"`
	// Page about these mails, to which each mail links, such as docs/author.md on your own
	// site. Empty: no link.
	HelpURL string `yaml:"help_url" check:"http-url"`
	// Keys sign and identify digests. Required for digests and look-ups.
	Keys *evidence.Keys
}

// Check implements the checks of package config. It refuses what would make mail unsafe or
// impossible to find again.
func (c Config) Check(p *config.Problems) {
	p.Keys("password", c.Password)
	c.Server.check(p, c.Password, "smtp", "smtps", "smtp+insecure")
	address := c.fromAddress()
	p.Add(c.From != "" && (!usableAddress(address) || !ascii(address)), "from", "is not a mail address in ASCII", "write one such as Criticizer <criticizer@example.com>")
	domain := c.messageIDDomain()
	p.Add(len(domain) > maxMessageIDDomain, "message_id_domain", "is too long", fmt.Sprintf("write one of at most %d characters", maxMessageIDDomain))
	p.Add(domain != "" && !domainPattern.MatchString(domain), "message_id_domain", "is not a domain", "write letters, digits, dots and hyphens")
	isEHLO := domainPattern.MatchString(c.EHLOName) || literalPattern.MatchString(c.EHLOName)
	p.Add(c.EHLOName != "" && !isEHLO, "ehlo_name", "is not a domain", "write one such as mail.example.com, or an address such as [192.0.2.5]")
	isAddress := usableAddress(c.Unsubscribe) && ascii(c.Unsubscribe)
	p.Add(c.Unsubscribe != "" && !isAddress && !oneClickPage.MatchString(c.Unsubscribe), "unsubscribe",
		"is neither a mail address nor an https page with {recipient}", "write one such as criticizer-owner@example.com")
}

// messageIDDomain returns the domain of Message-IDs.
func (c Config) messageIDDomain() string { return cmp.Or(c.MessageIDDomain, c.fromDomain()) }

// ehloName returns the name for EHLO.
func (c Config) ehloName() string { return cmp.Or(c.EHLOName, c.fromDomain()) }

// fromDomain returns the domain of From.
func (c Config) fromDomain() string {
	_, domain, _ := strings.Cut(c.fromAddress(), "@")
	return domain
}

// fromAddress returns the bare address of From, empty if From has none.
func (c Config) fromAddress() string {
	a, err := mail.ParseAddress(c.From)
	if err != nil {
		return ""
	}
	return a.Address
}
