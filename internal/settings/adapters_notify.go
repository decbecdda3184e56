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
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
)

// NewWebhook returns the client of the configured webhook.
func (cfg *Config) NewWebhook(lg *slog.Logger, keys *evidence.Keys) *webhook.Client {
	return webhook.New(lg, cfg.Webhook.URL, webhook.OnAmbiguous(cfg.Webhook.OnAmbiguous), keys)
}

// NewSwarm returns the client of P4 Code Review.
func (cfg *Config) NewSwarm(lg *slog.Logger, keys *evidence.Keys) *swarm.Server {
	return swarm.New(lg, swarm.Config{
		URL: cfg.Swarm.URL, User: cfg.Swarm.User, Ticket: cfg.Swarm.Ticket, Test: cfg.Swarm.Test,
		FailSeverity: review.Severity(cfg.Swarm.FailSeverity), Keys: keys,
	})
}

// CodeLinks returns the templates of links to the code.
func (cfg *Config) CodeLinks() review.Links {
	change, file := cfg.Links.Templates()
	return review.Links{Change: change, File: file}
}

// NewEvidenceKeys returns the keys that identify messages.
func (cfg *Config) NewEvidenceKeys() (*evidence.Keys, error) {
	return evidence.New(cfg.Evidence.Key, cfg.Evidence.KeyLife)
}

// NewOwners returns the recipients of changes to paths.
func (cfg *Config) NewOwners() (p4.Owners, error) {
	owners, err := p4.NewOwners(cfg.Mail.Owners)
	if err != nil {
		return nil, fmt.Errorf("mail.owners: %w", err)
	}
	return owners, nil
}

// RecipientPolicy returns the policy that decides who is notified.
func (cfg *Config) RecipientPolicy() activities.RecipientPolicy {
	return activities.RecipientPolicy{
		CleanTo: activities.CleanTo(cfg.Mail.CleanTo), Max: cfg.Mail.MaxRecipients,
		OptOut: cfg.Mail.OptOut, Bots: cfg.Mail.Bots, AllowedDomains: cfg.Mail.AllowedDomains,
	}
}

// MailServer returns the sender and the mail server. keys may be nil for mail other than
// digests.
func (cfg *Config) MailServer(keys *evidence.Keys) mail.Config {
	return mail.Config{
		Zone:            cfg.Mail.Zone(),
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
	}
}

// A MailProvider is a provider that probes can ping.
type MailProvider interface {
	mail.Provider
	Ping(ctx context.Context) error
}

// NewMailProvider returns the configured mail provider, for the server that [Mail] returns.
func (cfg *Config) NewMailProvider(lg *slog.Logger, server mail.Config) (MailProvider, error) {
	smtp, err := mail.NewSMTPProvider(lg, server)
	if err != nil {
		return nil, err
	}
	if cfg.Mail.Provider == "inbox" {
		return mail.NewEvidencedProvider(smtp, mail.EvidenceConfig{InboxURL: cfg.Mail.InboxURL})
	}
	return mail.NewEvidencedProvider(smtp, mail.EvidenceConfig{
		Journal:       cfg.JournalBox(),
		Bounces:       cfg.BouncesBox(),
		MTALog:        cfg.Mail.MTALog,
		Settle:        cfg.Mail.Settle,
		ResendInDoubt: cfg.Mail.OnAmbiguous == "resend",
	})
}

// JournalBox returns the mailbox with copies of accepted messages, or nil.
func (cfg *Config) JournalBox() *mail.Mailbox { return mailbox(cfg.Mail.Journal) }

// BouncesBox returns the mailbox with bounces, or nil.
func (cfg *Config) BouncesBox() *mail.Mailbox {
	return mailbox(cfg.Mail.Bounces)
}

func mailbox(c Mailbox) *mail.Mailbox {
	if c.Host == "" {
		return nil
	}
	return &mail.Mailbox{
		Host: c.Host, Port: c.Port, TLS: mail.TLSPolicy(c.TLS), Username: c.Username, Password: c.Password,
		TokenFile: c.TokenFile, Name: c.Mailbox,
	}
}
