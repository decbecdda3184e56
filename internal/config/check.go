package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"time"
)

// A Role is what a process does, which decides what it must know. The roles of
// a worker are the words of its --stages flag.
type Role string

// The roles.
const (
	RoleStarter   Role = "starter"
	RoleWorkflows Role = "workflows"
	RoleFetch     Role = "fetch"
	RoleRedact    Role = "redact"
	RoleLLM       Role = "llm"
	RoleNotify    Role = "notify"
	RoleRetention Role = "retention"
	RoleRewrite   Role = "rewrite"
	// RoleBackend enqueues rewrite jobs and opens their results.
	RoleBackend  Role = "backend"
	RoleOperator Role = "operator"
	// RolePreview reads a change as the first stages do and stores nothing.
	RolePreview Role = "preview"
	// RoleEval asks the model about cases and stores nothing.
	RoleEval Role = "eval"
)

// needs holds the sections of each role: so a process gets by with its own
// credentials, and a stage that is compromised has no others (security 9.4.3).
var needs = map[Role][]string{
	RoleStarter:   {"temporal", "starter"},
	RoleWorkflows: {"temporal", "database", "oncall"},
	RoleFetch:     {"temporal", "database", "artifacts", "p4"},
	RoleRedact:    {"temporal", "database", "artifacts", "redaction"},
	RoleLLM:       {"temporal", "database", "artifacts", "redaction", "llm"},
	RoleNotify:    {"temporal", "database", "artifacts", "mail", "webhook", "swarm", "feedback"},
	RoleRetention: {"temporal", "database"},
	RoleRewrite:   {"temporal", "database", "artifacts", "redaction", "rewrite"},
	RoleBackend:   {"database", "artifacts"},
	RoleOperator:  {"temporal", "database"},
	RolePreview:   {"p4"},
	RoleEval:      {"llm"},
}

// Check reports everything that keeps a process of the given roles from
// working, each as "field: what is wrong: what to do", and a secret by the name
// of its variable. Sections that none of the roles needs are not looked at.
func (c *Config) Check(roles ...Role) error {
	var p problems
	p.require("server_id", c.ServerID, "name the Perforce server")
	p.positive("mail.reconcile_every", int64(c.Mail.ReconcileEvery))
	p.positive("shelf.quiet", int64(c.Shelf.Quiet))
	c.Worker.check(&p)
	c.Breaker.check(&p)
	c.Log.check(&p)
	checks := map[string]func(*problems){
		"temporal": c.Temporal.check, "starter": c.Starter.check, "database": c.Database.check, "p4": c.P4.check, "llm": c.LLM.check,
		"redaction": c.Redaction.check, "artifacts": c.Artifacts.check, "mail": c.Mail.check, "webhook": c.Webhook.check, "swarm": c.Swarm.check, "feedback": c.Feedback.check,
		"oncall": c.OnCall.check, "rewrite": c.Rewrite.check,
	}
	var done []string
	for _, role := range roles {
		p.add(needs[role] == nil, "role "+string(role), "is unknown", fmt.Sprintf("write some of %v", slices.Sorted(maps.Keys(needs))))
		for _, section := range c.sections(role) {
			if !slices.Contains(done, section) {
				done = append(done, section)
				checks[section](&p)
			}
		}
	}
	if len(p) == 0 {
		return nil
	}
	return fmt.Errorf("check configuration:\n%w", errors.Join(p...))
}

// sections is what a role needs. Who pages by mail needs a mail server.
func (c *Config) sections(role Role) []string {
	if slices.Contains(needs[role], "oncall") && c.OnCall.Address != "" {
		return append(slices.Clone(needs[role]), "mail")
	}
	return needs[role]
}

func (t Temporal) check(p *problems) {
	p.require("temporal.address", t.Address, "write host:port of the Temporal frontend")
	p.require("temporal.namespace", t.Namespace, "name the Temporal namespace")
	p.add(t.APIKey.IsSet() && !t.TLS, "temporal.tls", "would send CRITICIZER_TEMPORAL_API_KEY in clear", "set it to true")
}

func (s Starter) check(p *problems) {
	p.require("starter.spool_dir", s.SpoolDir, "name a directory only the trigger's account may enter")
	p.positive("starter.spool_limit", int64(s.SpoolLimit))
}

func (d Database) check(p *problems) {
	p.requireSecret("CRITICIZER_DATABASE_URL", d.URL, "a Postgres URL")
}

func (c P4) check(p *problems) {
	p.require("p4.command", c.Command, "name the p4 command")
	p.require("p4.port", c.Port, "write the server's address as in P4PORT")
	p.require("p4.user", c.User, "name the account that reads changes")
	p.require("p4.state_dir", c.StateDir, "name a directory only this process may enter")
	p.add(len(c.AllowedPaths) == 0, "p4.allowed_paths", "is empty", "list what may be reviewed, such as //depot/project/...")
	p.oneOf("p4.mixed_changes", c.MixedChanges, "deny_whole", "review_allowed_only")
	p.positive("p4.timeout", int64(c.Timeout))
	p.positive("p4.max_files", int64(c.MaxFiles))
	p.positive("p4.max_file_bytes", int64(c.MaxFileBytes))
	p.positive("p4.max_change_bytes", int64(c.MaxChangeBytes))
	p.positive("p4.context_lines", int64(c.ContextLines))
}

func (l LLM) check(p *problems) {
	p.require("llm.model", l.Model, "name a model of the endpoint")
	p.oneOf("llm.answer_format", l.AnswerFormat, "json_schema", "json_object", "text")
	p.positive("llm.timeout", int64(l.Timeout))
	p.positive("llm.max_prompt_tokens", int64(l.MaxPromptTokens))
	p.positive("llm.max_answer_tokens", int64(l.MaxAnswerTokens))
	p.add(l.MaxTokensPerReview < l.MaxPromptTokens+l.MaxAnswerTokens, "llm.max_tokens_per_review", "does not hold one call",
		fmt.Sprintf("write at least %d, or lower the limits of prompt and answer", l.MaxPromptTokens+l.MaxAnswerTokens))
	p.positive("llm.concurrency", int64(l.Concurrency))
	p.add(l.MaxTokensPerDay < 0, "llm.max_tokens_per_day", "is negative", "0 is no limit")
	p.add(min(l.PricePerMillionPrompt, l.PricePerMillionCached, l.PricePerMillionCompletion) < 0, "llm.price_per_million_prompt", "or another price is negative", "0 is one that is not known")
	p.oneOf("llm.min_severity", l.MinSeverity, "low", "medium", "high", "critical")
	p.positive("llm.max_findings", int64(l.MaxFindings))
	p.oneOf("llm.falsify", l.Falsify, "off", "on", "low", "medium", "high", "critical")
	p.add(slices.Contains(l.FallbackModels, ""), "llm.fallback_models", "names a model without a name", "leave it out")
	if u := p.url("llm.base_url", l.BaseURL); u != nil {
		l.checkKey(p, u)
	}
}

// checkKey: https means a provider, who wants a key. http to another host is
// taken for a server of one's own without a key, for a key must not cross a
// network in clear (security 9.3).
func (l LLM) checkKey(p *problems, u *url.URL) {
	p.add(l.APIKeyOld.IsSet() && !l.APIKey.IsSet(), "OPENAI_API_KEY_OLD", "is set without a key that replaces it", "set OPENAI_API_KEY, or unset both")
	if loopback(u.Hostname()) {
		return
	}
	if u.Scheme == "https" {
		p.requireSecret("OPENAI_API_KEY", l.APIKey, "the key of "+u.Hostname())
		return
	}
	p.add(l.APIKey.IsSet(), "llm.base_url", "would send OPENAI_API_KEY in clear", "use https, or unset the key")
}

func (r Redaction) check(p *problems) {
	p.requireSecret("CRITICIZER_REDACTION_KEY", r.Key, "16 random bytes or more")
	p.add(slices.Contains(r.HostSuffixes, ""), "redaction.host_suffixes", "holds an empty entry", "delete it")
}

func (a Artifacts) check(p *problems) {
	p.atMost("artifacts.raw_ttl", a.RawTTL, 168*time.Hour)
	p.atMost("artifacts.redacted_ttl", a.RedactedTTL, 720*time.Hour)
	p.atMost("artifacts.report_ttl", a.ReportTTL, 720*time.Hour)
	p.requireSecret("CRITICIZER_ARTIFACT_KEYSET", a.Keyset, "a Tink keyset")
}

func (m Mail) check(p *problems) {
	p.oneOf("mail.provider", m.Provider, "smtp", "resend", "inbox")
	m.checkProvider(p)
	p.require("mail.from", m.From, "write the sender, such as Criticizer <criticizer@example.com>")
	p.oneOf("mail.clean_to", m.CleanTo, "author", "everyone", "nobody")
	p.positive("mail.max_recipients", int64(m.MaxRecipients))
	for _, bot := range m.Bots {
		_, err := path.Match(bot, "")
		p.add(err != nil, "mail.bots", fmt.Sprintf("%q is no pattern", bot), "write a user or address, with * for anything")
	}
	m.checkEvidence(p)
}

func (w Webhook) check(p *problems) {
	p.oneOf("webhook.on_ambiguous", w.OnAmbiguous, "hold", "resend")
	p.secretURL("CRITICIZER_WEBHOOK_URL", w.URL)
}

func (s Swarm) check(p *problems) {
	if s.URL == "" {
		return
	}
	u := p.url("swarm.url", s.URL)
	p.add(u != nil && u.Scheme == "http" && !loopback(u.Hostname()), "swarm.url", "would send CRITICIZER_SWARM_TICKET in clear", "use https")
	p.require("swarm.user", s.User, "name the account that comments")
	p.requireSecret("CRITICIZER_SWARM_TICKET", s.Ticket, "a ticket of swarm.user")
}

func (f Feedback) check(p *problems) {
	p.address("feedback.address", f.Address)
	if f.URL != "" {
		p.url("feedback.url", f.URL)
	}
}

func (o OnCall) check(p *problems) {
	p.address("oncall.address", o.Address)
	p.secretURL("CRITICIZER_ONCALL_WEBHOOK_URL", o.WebhookURL)
}

// Check reports what keeps pages from being told.
func (o OnCall) Check() error {
	var p problems
	o.check(&p)
	return errors.Join(p...)
}

// inFlightEntry is what package p4 takes for a limit, but for its wildcards.
var inFlightEntry = regexp.MustCompile(`^ *("//[^"]+"|//[^" ]+) +[1-9][0-9]* *$`)

func (w Worker) check(p *problems) {
	p.rate("worker.fetch_per_second", w.FetchPerSecond)
	p.rate("worker.llm_per_second", w.LLMPerSecond)
	p.rate("worker.notify_per_second", w.NotifyPerSecond)
	for _, entry := range w.MaxInFlightPerPath {
		p.add(!inFlightEntry.MatchString(entry), "worker.max_in_flight_per_path", fmt.Sprintf("%q is not a path with a number", entry),
			"write one such as //depot/main/... 4")
	}
	p.positive("worker.stop_grace", int64(w.StopGrace))
	p.add(w.BuildID != "" && w.Deployment == "", "worker.build_id", "is set, worker.deployment is not", "set both, or neither")
}

func (b Breaker) check(p *problems) {
	p.positive("breaker.failures", int64(b.Failures))
	p.positive("breaker.reviews", int64(b.Reviews))
}

func (l Log) check(p *problems) { p.oneOf("log.format", l.Format, "auto", "text", "json") }
