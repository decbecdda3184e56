package config

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A connection is one that this process would make, and the field that describes it.
type connection struct {
	section, field string
	host           string
	encrypted      bool
	hint           string
	variable       string // of the secret that is sent, if it is set
	secret         secret.Value
}

// connections lists the connections whose transport the configuration decides. The
// database is missing: package store knows what its URL means.
func (c *Config) connections() []connection {
	r := c.Rewrite
	all := []connection{
		perforce(c.P4.Port),
		{
			"temporal", "temporal.address", hostOf(c.Temporal.Address), c.Temporal.encrypted(),
			"enable TLS in the profile", "TEMPORAL_API_KEY", c.Temporal.APIKey,
		},
		overHTTP("llm", "llm.base_url", c.LLM.BaseURL, "OPENAI_API_KEY", c.LLM.APIKey),
		overHTTP("rewrite", "rewrite.openai.base_url", r.OpenAI.BaseURL, "CRITICIZER_REWRITE_OPENAI_API_KEY", r.OpenAI.APIKey),
		overHTTP("rewrite", "rewrite.google.base_url", r.Google.BaseURL, "CRITICIZER_REWRITE_GOOGLE_API_KEY", r.Google.APIKey),
		overHTTP("rewrite", "rewrite.other.base_url", r.Other.BaseURL, "CRITICIZER_REWRITE_OTHER_API_KEY", r.Other.APIKey),
		overHTTP("webhook", "CRITICIZER_WEBHOOK_URL", c.Webhook.URL.Reveal(), "CRITICIZER_WEBHOOK_URL", c.Webhook.URL),
		c.OnCall.connection(),
		overHTTP("swarm", "swarm.url", c.Swarm.URL, "CRITICIZER_SWARM_TICKET", c.Swarm.Ticket),
	}
	switch c.Mail.Provider {
	case "inbox":
		all = append(all, overHTTP("mail", "mail.inbox_url", c.Mail.InboxURL, "", secret.Value{}))
	case "resend":
		all = append(all, overHTTP("mail", "mail.resend_url", c.Mail.ResendURL, "CRITICIZER_RESEND_API_KEY", c.Mail.ResendAPIKey))
	}
	return all
}

// CheckClearText returns an error if a process with the roles would send something in
// clear. [Config.Check] includes it.
func (c *Config) CheckClearText(roles ...Role) error {
	var p problems
	c.checkClearText(&p, c.sections(roles))
	return errors.Join(p...)
}

func (c *Config) checkClearText(p *problems, sections []string) {
	for _, name := range c.AllowClearText {
		p.oneOf("allow_cleartext", name, []string{"p4", "database", "temporal", "llm", "rewrite", "mail"})
	}
	for _, to := range c.connections() {
		if slices.Contains(sections, to.section) {
			to.check(p, c.AllowsClearText(to.section))
		}
	}
}

// AllowsClearText reports whether the section's connections may be without TLS.
func (c *Config) AllowsClearText(section string) bool {
	return slices.Contains(c.AllowClearText, section)
}

// check refuses a connection to another host without TLS, unless it is allowed and sends
// no secret.
func (to connection) check(p *problems, allowed bool) {
	switch {
	case to.encrypted || loopback(to.host):
	case to.secret.IsSet():
		p.add(true, to.field, "would send "+to.variable+" in clear", to.hint+", or unset the secret")
	case !allowed:
		p.add(true, to.field, "would be used without TLS", to.hint+", or add "+to.section+" to allow_cleartext")
	}
}

// perforce reads P4PORT as [protocol:][host:]port. The default protocol is tcp, the
// default host this one. The ticket does not count as a secret here: every connection
// needs it, so allow_cleartext would have no effect.
func perforce(port string) connection {
	protocol, address, found := strings.Cut(port, ":")
	encrypted := found && slices.Contains([]string{"ssl", "ssl4", "ssl6", "ssl46", "ssl64"}, protocol)
	if !found || !encrypted && !slices.Contains([]string{"tcp", "tcp4", "tcp6", "tcp46", "tcp64"}, protocol) {
		address = port
	}
	if !strings.Contains(address, ":") {
		address = "localhost:" + address
	}
	return connection{section: "p4", field: "p4.port", host: hostOf(address), encrypted: encrypted, hint: "write ssl:host:port"}
}

// overHTTP returns the connection to a URL. Config.Check reports an invalid URL.
func overHTTP(section, field, address, variable string, s secret.Value) connection {
	u, err := url.Parse(address)
	if err != nil {
		u = new(url.URL)
	}
	return connection{section, field, u.Hostname(), u.Scheme != "http", "use https", variable, s}
}

// hostOf returns the host of host:port, or all of an address of another form.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
