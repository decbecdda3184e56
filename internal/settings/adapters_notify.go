package settings

import (
	"log/slog"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
)

// NewWebhook returns the client of the configured webhook.
func (cfg *Config) NewWebhook(lg *slog.Logger, keys *evidence.Keys) *webhook.Client {
	return webhook.New(lg, cfg.Webhook.URL, keys)
}

// NewSwarm returns the client of P4 Code Review.
func (cfg *Config) NewSwarm(lg *slog.Logger, keys *evidence.Keys) *swarm.Server {
	server := cfg.Swarm
	server.Keys = keys
	return swarm.New(lg, server)
}

// NewEvidenceKeys returns the keys that identify messages.
func (cfg *Config) NewEvidenceKeys() (*evidence.Keys, error) {
	return evidence.New(cfg.Evidence.Key, evidence.Life)
}

// RecipientPolicy returns the policy that decides who is notified.
func (cfg *Config) RecipientPolicy() activities.RecipientPolicy {
	policy := cfg.Mail.Recipients
	policy.Max = activities.MaxRecipients
	return policy
}

// MailServer returns the sender and the mail server. keys may be nil for mail other than
// digests.
func (cfg *Config) MailServer(keys *evidence.Keys) mail.Config {
	server := cfg.Mail.Server
	server.Keys = keys
	return server
}

// Answers returns the mailbox in which readers answer, nil if they cannot. redact masks
// secrets in what they write.
func (cfg *Config) Answers(keys *evidence.Keys, redact func(string) (string, error)) *mail.Answers {
	if cfg.Mail.Server.Feedback == "" {
		return nil
	}
	return &mail.Answers{Mailbox: cfg.Mail.Evidence.Bounces, Keys: keys, Relay: cfg.Mail.Server.FeedbackRelay, Redact: redact}
}

// NewMailProvider returns the configured mail provider, for the server that MailServer returns.
func (cfg *Config) NewMailProvider(lg *slog.Logger, server mail.Config) (*mail.EvidencedProvider, error) {
	smtp, err := mail.NewSMTPProvider(lg, server)
	if err != nil {
		return nil, err
	}
	records := cfg.Mail.Evidence
	if cfg.Mail.Provider == "inbox" {
		records = mail.EvidenceConfig{InboxURL: records.InboxURL}
	} else {
		records.InboxURL = ""
	}
	return mail.NewEvidencedProvider(smtp, records)
}
