package settings

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// Webhook configures the place to which each review is also posted, such as a
// channel of Slack, in Slack's format (docs/outputs.md).
type Webhook struct {
	// Whether reviews without findings are posted.
	Clean bool `yaml:"clean" default:"false"`
	// How a message is handled that may have been accepted, because a webhook has
	// no way to look it up: hold it for an operator; post it again with the same
	// idempotency_key, for a receiver that honors one; or resend it to any receiver.
	OnAmbiguous string `yaml:"on_ambiguous" default:"hold" oneof:"hold idempotency_key resend"`
	// URL that is posted to. The whole URL is a secret because it authorizes to
	// post. Unset: nothing is posted.
	URL secret.Value `yaml:"url"`
}

// Check implements the checks of package config.
func (w Webhook) Check(p *config.Problems) {
	if w.URL.IsSet() {
		p.URL("url", w.URL.Reveal())
	}
}

// Connections returns the connection to the webhook.
func (w Webhook) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("url", w.URL.Reveal(), "url", w.URL)}
}

// Swarm configures the P4 Code Review (Swarm) server to which each review is
// posted, as comments and one test run (docs/outputs.md).
type Swarm struct {
	// Address of the server. Empty: nothing is posted.
	URL string `yaml:"url"`
	// Account that comments.
	User string `yaml:"user"`
	// Name of the test run. Empty: none.
	Test string `yaml:"test" default:"criticizer"`
	// Least severity of a finding with which the test run fails. It also fails if a part
	// of the change was not reviewed.
	FailSeverity string `yaml:"fail_severity" default:"high" oneof:"critical high medium low"`
	// Ticket of the account, valid on all hosts (p4 login -a -p).
	Ticket secret.Value `yaml:"ticket"`
}

// Check implements the checks of package config.
func (s Swarm) Check(p *config.Problems) {
	if s.URL == "" {
		return
	}
	p.URL("url", s.URL)
	p.Require("user", s.User, "the account that comments")
	p.RequireSecret("ticket", s.Ticket, "a ticket of swarm.user")
}

// Connections returns the connection to the server.
func (s Swarm) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("url", s.URL, "ticket", s.Ticket)}
}

// Links configures the links to the code in mails, posts and exported reports
// (docs/outputs.md).
type Links struct {
	// Templates for a product: swarm (P4 Code Review), p4v or p4web. Empty: those below.
	Preset string `yaml:"preset"`
	// Address of the product of the preset, such as https://swarm.example.com, or the
	// host and port of the Perforce server for p4v.
	Server string `yaml:"server"`
	// Template of the link to a change, with {changelist}. Empty: the preset's, or none.
	Change string `yaml:"change"`
	// Template of the link to a file, with {path} and perhaps {changelist} and {line}.
	// Empty: the preset's, or none.
	File string `yaml:"file"`
}

// linkPresets are the templates of changes and files.
var linkPresets = map[string][2]string{
	"swarm": {"{server}/changes/{changelist}", "{server}/files/{path}?v=%40%3D{changelist}#L{line}"},
	"p4v":   {"p4://{server}/{changelist}", "p4://{server}//{path}@{changelist}"},
	"p4web": {"{server}/{changelist}?ac=10", "{server}//{path}@{changelist}"},
}

// Templates returns the templates of the links to a change and to a file.
func (l Links) Templates() (change, file string) {
	preset := linkPresets[l.Preset]
	server := strings.TrimSuffix(l.Server, "/")
	change = cmp.Or(l.Change, strings.ReplaceAll(preset[0], "{server}", server))
	return change, cmp.Or(l.File, strings.ReplaceAll(preset[1], "{server}", server))
}

// Check implements the checks of package config.
func (l Links) Check(p *config.Problems) {
	if l.Preset != "" {
		p.OneOf("preset", l.Preset, slices.Sorted(maps.Keys(linkPresets)))
		p.Require("server", l.Server, "the address for links.preset "+l.Preset)
	}
	change, file := l.Templates()
	for name, t := range map[string][2]string{"change": {change, "{changelist}"}, "file": {file, "{path}"}} {
		u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(t[0]))
		bad := err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "p4"}, u.Scheme) || !strings.Contains(t[0], t[1])
		p.Add(t[0] != "" && bad, name, "is not a link with "+t[1], "write one that begins with https://, http:// or p4://")
	}
}

// Evidence configures the tokens by which a mail or post of ours is identified at a
// mail server or another service (docs/delivery.md).
type Evidence struct {
	// How long a rotated key still identifies what it has signed. An attempt in doubt
	// whose key is older is held for an operator.
	KeyLife time.Duration `yaml:"key_life" default:"720h" check:"positive"`
	// Keys that sign the tokens, one per line.
	Key secret.Value `yaml:"key" required:"the output of criticizer keyset evidence"`
}

// Feedback configures the links in a mail by which readers rate a finding. The command
// criticizer feedback needs none (docs/findings.md).
type Feedback struct {
	// Mail address that the links write to, with the rating in the subject.
	Address string `yaml:"address" check:"address"`
	// Page that the links open instead, with the parameters token and opinion.
	URL string `yaml:"url"`
}

// Check implements the checks of package config.
func (f Feedback) Check(p *config.Problems) {
	if f.URL != "" {
		p.URL("url", f.URL)
	}
}

// OnCall configures who is paged about a dead letter that needs a person at once:
// a replay failed again for the same reason, a bug or a bad configuration, and,
// once, refused credentials or exhausted credit. If both fields are set, both are
// notified; if neither is set, pages wait.
type OnCall struct {
	// Whether workers of stage workflows refuse to start, and criticizer doctor fails,
	// if no page can be sent. Set it in production.
	Required bool `yaml:"required" default:"false"`
	// Mail address that is notified, through the server of section mail.
	Address string `yaml:"address" check:"address"`
	// URL that receives each page as JSON. The whole URL is a secret because most
	// contain a token.
	WebhookURL secret.Value `yaml:"webhook_url"`
}

// Check implements the checks of package config.
func (o OnCall) Check(p *config.Problems) {
	if o.WebhookURL.IsSet() {
		p.URL("webhook_url", o.WebhookURL.Reveal())
	}
	p.Add(o.Required && !o.Pages(), "required", "is set, and no page can be sent", "set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL")
}

// Pages reports whether a page can be sent.
func (o OnCall) Pages() bool { return o.Address != "" || o.WebhookURL.IsSet() }

// Connections returns the connection to the webhook.
func (o OnCall) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("webhook_url", o.WebhookURL.Reveal(), "webhook_url", o.WebhookURL)}
}
