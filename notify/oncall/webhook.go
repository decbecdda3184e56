package oncall

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/post"
)

// A Webhook posts pages as JSON to a URL.
type Webhook struct {
	url     secret.Value
	service post.Service
}

// NewWebhook returns a channel to target, which is a secret: the URL of most
// services holds a token.
func NewWebhook(target secret.Value) *Webhook {
	const hint = "check CRITICIZER_ONCALL_WEBHOOK_URL"
	return &Webhook{target, post.Service{Name: "on-call webhook", Denied: hint, Invalid: hint}}
}

// Name implements [Channel].
func (w *Webhook) Name() string { return "webhook" }

// Notify implements [Channel]. The idempotency key is the same for every attempt
// at one page.
func (w *Webhook) Notify(ctx context.Context, p failure.Page) error {
	r, err := post.JSON(w.url.Reveal(), fmt.Sprintf("criticizer-page-%d", p.ID), p)
	if err != nil {
		return err
	}
	_, err = w.service.Send(ctx, r)
	return err
}
