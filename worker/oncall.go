package main

import (
	"context"

	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/store"
)

// sendPages sends the pages of the outbox in the background. Every process that
// serves the workflows does so; the outbox gives each page to one of them.
func (r *runtime) sendPages(ctx context.Context, db *store.DB) {
	var channels []oncall.Channel
	if r.cfg.OnCall.WebhookURL.IsSet() {
		channels = append(channels, oncall.Webhook(r.cfg.OnCall.WebhookURL))
	}
	if r.cfg.OnCall.Address != "" {
		// SMTP for every provider: the embedded inbox accepts it too.
		server := mail.NewServer(r.lg, r.cfg.MailServer(nil))
		channels = append(channels, oncall.Mail(func(ctx context.Context, id, subject, text string) error {
			return server.SendText(ctx, r.cfg.OnCall.Address, id, subject, text)
		}))
	}
	if len(channels) == 0 {
		r.lg.WarnContext(ctx, "no one is paged: set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL")
		return
	}
	r.background(ctx, oncall.New(r.lg, db, r.cfg.Temporal.RunURL, channels...).Run)
}
