package main

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/store"
)

// sendPages sends the pages of the outbox in the background. Every process that
// serves the workflows does so; the outbox gives each page to one of them.
func (r *runtime) sendPages(ctx context.Context, db *store.DB) error {
	channels, err := r.pageChannels()
	if err != nil {
		return err
	}
	if len(channels) == 0 {
		r.lg.WarnContext(ctx, "no one is paged: set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL")
		return nil
	}
	r.background(ctx, oncall.New(r.lg, db, channels...).Run)
	return nil
}

// pageChannels returns the configured channels to the person on call.
func (r *runtime) pageChannels() ([]oncall.Channel, error) {
	var channels []oncall.Channel
	if r.cfg.OnCall.WebhookURL.IsSet() {
		channels = append(channels, oncall.NewWebhook(r.cfg.OnCall.WebhookURL))
	}
	if r.cfg.OnCall.Address == "" {
		return channels, nil
	}
	// SMTP for every provider: the embedded inbox accepts it too.
	server, err := mail.NewSMTPProvider(r.lg, wiring.Mail(r.cfg, nil))
	if err != nil {
		return nil, err
	}
	byMail, err := oncall.NewMail(r.cfg.Mail.From, r.cfg.OnCall.Address,
		func(ctx context.Context, m oncall.Message) error {
			_, err := server.Send(ctx, mail.Message{ID: m.ID, From: m.From, To: m.To, Date: time.Now(), Subject: m.Subject, Text: m.Text})
			return err
		})
	return append(channels, byMail), err
}
