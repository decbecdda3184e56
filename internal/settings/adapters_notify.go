package settings

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
	"github.com/criticizer/criticizer/review"
)

// A Channel is a configured place beside mail to which reviews are posted.
type Channel struct {
	activities.Channel
	Ping     func(context.Context) error // reaches the service and posts nothing
	OK, Hint string                      // what criticizer doctor reports if Ping succeeds, and advises if not
}

// Channels returns the configured channels.
func (cfg *Config) Channels(lg *slog.Logger, keys *evidence.Keys) (channels []Channel) {
	if cfg.Webhook.URL.IsSet() {
		client := webhook.New(lg, cfg.Webhook.URL, keys)
		channels = append(channels, Channel{
			activities.Channel{Name: review.ChannelWebhook, Post: client, Wants: func(r review.Report) bool { return cfg.Webhook.Filter.Wants(r, cfg.Webhook.Severity) }}, client.Ping,
			"the URL responds; whether it accepts messages is not checked",
			"check that the service at CRITICIZER_WEBHOOK_URL is up and that this machine may reach it; mails are sent without it",
		})
	}
	if cfg.Swarm.URL != "" {
		server := cfg.Swarm
		server.Keys = keys
		client := swarm.New(lg, server)
		channels = append(channels, Channel{
			activities.Channel{Name: review.ChannelSwarm, Post: client, Wants: func(r review.Report) bool { return cfg.Swarm.Filter.Wants(r, cfg.Swarm.Severity) }}, client.Ping,
			fmt.Sprintf("%s lists reviews for user %s", cfg.Swarm.URL, cfg.Swarm.User),
			"check that P4 Code Review is up at swarm.url, and that CRITICIZER_SWARM_TICKET is one of swarm.user for all hosts (p4 login -a -p); mails are sent without it",
		})
	}
	return channels
}

// NewEvidenceKeys returns the keys that identify messages.
func (cfg *Config) NewEvidenceKeys() (*evidence.Keys, error) {
	return evidence.New(cfg.Evidence.Key)
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
	server := cfg.Mail.SMTP
	server.Keys = keys
	return server
}

// Answers returns the mailbox in which readers answer, nil if they cannot. redact masks
// secrets in what they write.
func (cfg *Config) Answers(keys *evidence.Keys, redact func(string) (string, error)) *mail.Answers {
	if cfg.Mail.SMTP.FeedbackRelay == "" {
		return nil
	}
	return &mail.Answers{Mailbox: cfg.Mail.Evidence.Bounces, Keys: keys, Relay: cfg.Mail.SMTP.FeedbackRelay, Redact: redact}
}

// NewMailProvider returns the configured mail provider, for the server that MailServer returns.
func (cfg *Config) NewMailProvider(lg *slog.Logger, server mail.Config) (*mail.Provider, error) {
	return mail.NewProvider(mail.NewServer(lg, server), cfg.Mail.Evidence)
}
