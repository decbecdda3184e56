package main

import (
	"context"
	"sync"

	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/store"
)

// page empties the outbox of pages beside the bookkeeping until ctx ends. It
// does so in every process that serves the workflows: the outbox hands each
// page to one of them.
func (p *plant) page(ctx context.Context, db *store.DB) error {
	channels, err := p.channels()
	if err != nil {
		return err
	}
	if len(channels) == 0 {
		p.lg.WarnContext(ctx, "nobody is paged: set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL")
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { oncall.New(p.lg, db, channels...).Run(ctx) })
	p.closers = append(p.closers, func() { stop(); running.Wait() })
	return nil
}

// channels are the ways to the person on call that the configuration names.
func (p *plant) channels() ([]oncall.Channel, error) {
	var channels []oncall.Channel
	if p.cfg.OnCall.WebhookURL.IsSet() {
		channels = append(channels, oncall.NewWebhook(p.cfg.OnCall.WebhookURL))
	}
	if p.cfg.OnCall.Address == "" {
		return channels, nil
	}
	// The inbox is a mail server too; only its look-ups are its own.
	server, err := mail.NewSMTPProvider(p.lg, wiring.Mail(p.cfg))
	if err != nil {
		return nil, err
	}
	byMail, err := oncall.NewMail(p.cfg.Mail.From, p.cfg.OnCall.Address,
		func(ctx context.Context, id, from, to string, raw []byte) error {
			_, err := server.Send(ctx, mail.Message{ID: id, From: from, To: to, Raw: raw})
			return err
		})
	return append(channels, byMail), err
}
