package oncall

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/post"
)

// A Mail sends pages to one mail address.
type Mail struct {
	send func(ctx context.Context, id, subject, text string) error
}

// NewMail returns a channel to the address of send, which passes a mail of plain text to a
// mail server. id is the Message-ID before its domain.
func NewMail(send func(ctx context.Context, id, subject, text string) error) *Mail {
	return &Mail{send}
}

// Name implements [Channel].
func (m *Mail) Name() string { return "mail" }

// Notify implements [Channel].
func (m *Mail) Notify(ctx context.Context, p failure.Page) error {
	subject := fmt.Sprintf("[criticizer] %s: %s in stage %s of CL %d", p.Reason, p.ErrorClass, p.Stage, p.Changelist)
	if err := m.send(ctx, fmt.Sprintf("criticizer-page-%d", p.ID), subject, text(p)); err != nil {
		return fmt.Errorf("mail page: %w", err)
	}
	return nil
}

// explanations explains each reason to the person on call.
var explanations = map[failure.PageReason]string{
	failure.PageEscalated: "It was replayed and failed again for the same reason.",
	failure.PageBug:       "This is a bug or a wrong configuration. It affects more than one review.",
	failure.PageDenied:    "Every review fails with this error, and no retry helps. The other reviews send no page.",
}

func text(p failure.Page) string {
	if p.Outage != "" {
		p.Hint += "; " + p.Outage
	}
	links := "Runbook  " + p.RunbookURL + "\n"
	if p.TemporalURL != "" {
		links += "Temporal " + p.TemporalURL + "\n"
	}
	return fmt.Sprintf(`The review of changelist %d (version %d) is dead-lettered in stage %s with %s.
%s

What to do: %s.

  criticizer deadletter show %d

Workflow %s
Run      %s
Failed   %s
%s`, p.Changelist, p.ReviewVersion, p.Stage, p.ErrorClass, explanations[p.Reason], p.Hint, p.DeadLetterID,
		p.WorkflowID, p.RunID, p.LastFailureAt.UTC().Format(time.RFC3339), links)
}

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
