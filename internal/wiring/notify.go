package wiring

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
)

// Webhook returns the client of the configured webhook.
func Webhook(lg *slog.Logger, cfg *config.Config, keys *evidence.Keys) *webhook.Hook {
	return webhook.New(lg, cfg.Webhook.URL, webhook.Doubt(cfg.Webhook.OnAmbiguous), keys)
}

// Swarm returns the client of P4 Code Review.
func Swarm(lg *slog.Logger, cfg *config.Config, keys *evidence.Keys) *swarm.Server {
	return swarm.New(lg, swarm.Config{
		URL: cfg.Swarm.URL, User: cfg.Swarm.User, Ticket: cfg.Swarm.Ticket, Test: cfg.Swarm.Test,
		FailSeverity: review.Severity(cfg.Swarm.FailSeverity), Keys: keys,
	})
}

// Links returns the templates of links to the code.
func Links(cfg *config.Config) review.Links {
	change, file := cfg.Links.Templates()
	return review.Links{Change: change, File: file}
}

// EvidenceKeys returns the keys that identify messages.
func EvidenceKeys(cfg *config.Config) (*evidence.Keys, error) {
	return evidence.New(cfg.Evidence.Key, cfg.Evidence.KeyLife)
}

// Owners returns the recipients of changes to paths.
func Owners(cfg *config.Config) (p4.Owners, error) {
	owners, err := p4.NewOwners(cfg.Mail.Owners)
	if err != nil {
		return nil, fmt.Errorf("mail.owners: %w", err)
	}
	return owners, nil
}

// Recipients returns the policy that decides who is notified.
func Recipients(cfg *config.Config) activities.RecipientPolicy {
	return activities.RecipientPolicy{
		CleanTo: activities.CleanTo(cfg.Mail.CleanTo), Max: cfg.Mail.MaxRecipients,
		OptOut: cfg.Mail.OptOut, Bots: cfg.Mail.Bots, AllowedDomains: cfg.Mail.AllowedDomains,
	}
}

// Mail returns the sender and the mail server. keys may be nil for mail other than
// digests.
func Mail(cfg *config.Config, keys *evidence.Keys) mail.Config {
	return mail.Config{
		Zones:           cfg.Mail.Zones(),
		Keys:            keys,
		From:            cfg.Mail.From,
		MessageIDDomain: cfg.Mail.MessageIDDomain,
		Host:            cfg.Mail.Host,
		Port:            cfg.Mail.Port,
		TLS:             mail.TLSPolicy(cfg.Mail.TLS),
		Username:        cfg.Mail.Username,
		Password:        cfg.Mail.Password,
		PasswordOld:     cfg.Mail.PasswordOld,
		TokenFile:       cfg.Mail.TokenFile,
		InboxURL:        cfg.Mail.InboxURL,
	}
}

// A MailProvider is a provider that probes can ping.
type MailProvider interface {
	mail.Provider
	Ping(ctx context.Context) error
}

// Provider returns the configured mail provider, for the server that [Mail] returns.
func Provider(lg *slog.Logger, cfg *config.Config, server mail.Config) (MailProvider, error) {
	switch cfg.Mail.Provider {
	case "inbox":
		return mail.NewInboxProvider(lg, server)
	case "resend":
		return mail.NewResendProvider(mail.ResendConfig{
			URL: cfg.Mail.ResendURL, APIKey: cfg.Mail.ResendAPIKey, ResendInDoubt: cfg.Mail.OnAmbiguous == "resend", Keys: server.Keys,
		})
	}
	smtp, err := mail.NewSMTPProvider(lg, server)
	if err != nil {
		return nil, err
	}
	return mail.NewEvidencedProvider(smtp, mail.EvidenceConfig{
		Journal:       Journal(cfg),
		Bounces:       Bounces(cfg),
		MTALog:        cfg.Mail.MTALog,
		Settle:        cfg.Mail.Settle,
		ResendInDoubt: cfg.Mail.OnAmbiguous == "resend",
	})
}

// Journal returns the mailbox with copies of accepted messages, or nil.
func Journal(cfg *config.Config) *mail.Mailbox { return mailbox(cfg.Mail.Journal) }

// Bounces returns the mailbox with bounces, or nil.
func Bounces(cfg *config.Config) *mail.Mailbox {
	return mailbox(cfg.Mail.Bounces)
}

func mailbox(c config.Mailbox) *mail.Mailbox {
	if c.Host == "" {
		return nil
	}
	return &mail.Mailbox{
		Host: c.Host, Port: c.Port, TLS: mail.TLSPolicy(c.TLS), Username: c.Username, Password: c.Password,
		TokenFile: c.TokenFile, Name: c.Mailbox,
	}
}
