package wiring

import (
	"context"
	"log/slog"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
)

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
