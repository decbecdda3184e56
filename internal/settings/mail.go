package settings

import (
	"fmt"
	"path"
	"strings"
	"time"
	_ "time/tzdata" // for images without a time zone database

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// Mail configures how reports are mailed, and to whom.
type Mail struct {
	// smtp sends through a mail server, inbox to the embedded server of devstack. There
	// is no default: a new installation sends nothing.
	Provider string `yaml:"provider" oneof:"smtp inbox"`
	// Mail server.
	Host string `yaml:"host"`
	// Its port: 587 for mandatory, usually 465 for implicit TLS.
	Port int `yaml:"port" default:"587" check:"port"`
	// mandatory (STARTTLS is required), implicit (TLS from the first byte), or none,
	// which is allowed for a server on this host only.
	TLS string `yaml:"tls" default:"mandatory" oneof:"mandatory implicit none"`
	// Sender: an address, or a name followed by the address in angle brackets.
	From string `yaml:"from" required:"the sender, such as Criticizer <criticizer@example.com>"`
	// Domain of Message-IDs, at most 20 characters. Empty: the domain of from.
	// Change it only while no delivery is open: earlier attempts are not found
	// under a new domain.
	MessageIDDomain string `yaml:"message_id_domain"`
	// Account at the mail server. Empty: no authentication.
	Username string `yaml:"username"`
	// File with an OAuth2 access token of the account, used instead of a password.
	// It is read for every connection.
	TokenFile string `yaml:"token_file"`
	// Address of the embedded inbox, such as http://127.0.0.1:8025.
	InboxURL string `yaml:"inbox_url"`
	// Time zone of times in mails, such as Europe/Berlin.
	TimeZone string `yaml:"time_zone" default:"UTC"`
	// Who gets a mail without findings: author, everyone or nobody.
	CleanTo string `yaml:"clean_to" default:"author" oneof:"author everyone nobody"`
	// Largest number of recipients of one review.
	MaxRecipients int `yaml:"max_recipients" default:"50" check:"positive"`
	// Recipients of changes to a path, besides author and subscribers. Each entry
	// is a path with p4 wildcards and mail addresses, such as
	// //depot/db/....sql dba@example.com. Quote a path with spaces. The fetch stage
	// reads it.
	Owners []string `yaml:"owners"`
	// Mail addresses or p4 users that are never notified.
	OptOut []string `yaml:"opt_out"`
	// Domains of the addresses that are notified, such as example.com; a subdomain
	// needs its own entry. Empty: all.
	AllowedDomains []string `yaml:"allowed_domains"`
	// Bots: p4 users or mail addresses, in which * matches any text, such as
	// build-*. Their changes have a lower priority. The fetch stage reads it.
	Bots []string `yaml:"bots"`
	// How often deliveries are compared with the records of the mail server.
	ReconcileEvery time.Duration `yaml:"reconcile_every" default:"15m" check:"positive"`
	// Password of the account. Required with a username and without a token.
	Password secret.Value `yaml:"password" env:"CRITICIZER_SMTP_PASSWORD"`
	// Previous password, used during a rotation if the server rejects the new one.
	PasswordOld secret.Value `yaml:"password_old" env:"CRITICIZER_SMTP_PASSWORD_OLD"`
	// Log of a Postfix on this host, read for delivery evidence together with the
	// last rotated file, FILE.1. Empty: not read.
	MTALog string `yaml:"mta_log"`
	// How long after the begin of an attempt a missing message in journal and log
	// is no evidence, because the server may still process it.
	Settle time.Duration `yaml:"settle" default:"10m" check:"positive"`
	// How a message is handled that may have been sent and for which there will be
	// no evidence: hold it for an operator, or resend it.
	OnAmbiguous string `yaml:"on_ambiguous" default:"hold" oneof:"hold resend"`
	// The mailbox, read by IMAP, to which the mail server copies every message that
	// it accepts.
	Journal Mailbox `yaml:"journal"`
	// The mailbox of the sender, read by IMAP for bounces.
	Bounces Mailbox `yaml:"bounces"`
}

// A Mailbox configures a mailbox that is read by IMAP.
type Mailbox struct {
	// IMAP server. Empty: the mailbox is not read.
	Host string `yaml:"host"`
	// Its port: 143 for mandatory, usually 993 for implicit TLS.
	Port int `yaml:"port" default:"143" check:"port"`
	// As mail.tls.
	TLS string `yaml:"tls" default:"mandatory" oneof:"mandatory implicit none"`
	// Account that may read it.
	Username string `yaml:"username"`
	// As mail.token_file.
	TokenFile string `yaml:"token_file"`
	// Name of the mailbox. Messages must stay in it for 30 days.
	Mailbox string `yaml:"mailbox" default:"INBOX"`
	// Password of the account.
	Password secret.Value `yaml:"password"`
}

// Zone returns the time zone, nil if Check refuses it.
func (m Mail) Zone() *time.Location {
	zone, err := time.LoadLocation(m.TimeZone)
	if err != nil {
		return nil
	}
	return zone
}

// Check implements the checks of package config.
func (m Mail) Check(p *config.Problems) {
	for _, bot := range m.Bots {
		_, err := path.Match(bot, "")
		p.Add(err != nil, "bots", fmt.Sprintf("%q is not a pattern", bot), "write a user or address, with * for any text")
	}
	for _, domain := range m.AllowedDomains {
		p.Add(strings.ContainsAny(domain, "@*/ ") || !strings.Contains(domain, "."), "allowed_domains", fmt.Sprintf("%q is not a domain", domain), "write one such as example.com, without @ and wildcards")
	}
	_, err := time.LoadLocation(m.TimeZone)
	p.Add(err != nil, "time_zone", fmt.Sprintf("%q is not a time zone", m.TimeZone), "write one such as Europe/Berlin")
	if m.Provider == "inbox" {
		p.URL("inbox_url", m.InboxURL)
	}
	p.Require("host", m.Host, "the mail server")
	p.Add(m.TLS == "none" && !config.Loopback(m.Host), "tls", "is none for a server on another host", "set it to mandatory or implicit")
	p.Replacement("password_old", m.PasswordOld, "password", m.Password)
	p.Add(m.Username == "" && (m.Password.IsSet() || m.TokenFile != ""), "username", "is not set, but its password or token file is", "set both or neither")
	if m.Username != "" {
		credentials(p, "mail.username", m.TokenFile, m.Password)
	}
}

// Connections returns the connection to the embedded inbox. The field tls protects the
// connection to a mail server.
func (m Mail) Connections() []config.Connection {
	if m.Provider != "inbox" {
		return nil
	}
	return []config.Connection{config.OverHTTP("inbox_url", m.InboxURL, "", secret.Value{})}
}

// Check implements the checks of package config.
func (m Mailbox) Check(p *config.Problems) {
	if m.Host == "" {
		return
	}
	p.Require("username", m.Username, "the account that may read the mailbox")
	credentials(p, "its username", m.TokenFile, m.Password)
	p.Add(m.TLS == "none" && !config.Loopback(m.Host), "tls", "is none for a server on another host", "set it to mandatory or implicit")
}

// credentials wants the password of an account or a token file, not both.
func credentials(p *config.Problems, account, tokenFile string, password secret.Value) {
	if tokenFile == "" {
		p.RequireSecret("password", password, "the password of "+account)
	}
	p.Add(tokenFile != "" && password.IsSet(), "token_file", "is set, and so is a password", "set one of them")
}
