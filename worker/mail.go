package main

import (
	"context"

	"github.com/criticizer/criticizer/config"
	"github.com/criticizer/criticizer/mail"
)

// A mailProvider can be pinged, so that the queue starts again once it answers.
type mailProvider interface {
	mail.Provider
	Ping(ctx context.Context) error
}

func newMailProvider(p *plant) (mailProvider, error) {
	switch p.cfg.Mail.Provider {
	case "inbox":
		return mail.NewInboxProvider(p.lg, p.mailConfig())
	case "resend":
		return mail.NewResendProvider(mail.ResendConfig{
			URL: p.cfg.Mail.ResendURL, APIKey: p.cfg.Mail.ResendAPIKey, OnAmbiguous: mail.OnAmbiguous(p.cfg.Mail.OnAmbiguous),
		})
	}
	server, err := mail.NewSMTPProvider(p.lg, p.mailConfig())
	if err != nil {
		return nil, err
	}
	return mail.NewEvidencedProvider(p.lg, server, mail.EvidenceConfig{
		Journal:     mailbox(p.cfg.Mail.Journal),
		Bounces:     mailbox(config.MailJournal(p.cfg.Mail.Bounces)),
		MTALog:      p.cfg.Mail.MTALog,
		Settle:      p.cfg.Mail.Settle,
		OnAmbiguous: mail.OnAmbiguous(p.cfg.Mail.OnAmbiguous),
	})
}

// mailbox is nil without a host: then there is none.
func mailbox(c config.MailJournal) *mail.Mailbox {
	if c.Host == "" {
		return nil
	}
	return &mail.Mailbox{
		Host: c.Host, Port: c.Port, TLS: mail.TLSPolicy(c.TLS), Username: c.Username, Password: c.Password, Name: c.Mailbox,
	}
}
