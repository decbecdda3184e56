package oncall

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/post"
)

// A Channel is one way to reach the person on call.
type Channel struct {
	// Name identifies the channel in the outbox. It is stored: never rename it.
	Name string
	// Notify returns nil once the page is accepted. Every error is retried. The text of an
	// error is logged: it contains no address and no secret.
	Notify func(ctx context.Context, p failure.Page) error
}

// Mail returns a channel to the address of send, which passes a mail of plain text to a
// mail server. id is the Message-ID before its domain.
func Mail(send func(ctx context.Context, id, subject, text string) error) Channel {
	return Channel{"mail", func(ctx context.Context, p failure.Page) error {
		subject := fmt.Sprintf("[criticizer] %s: %s in stage %s of CL %d", p.Reason, p.ErrorClass, p.Stage, p.Changelist)
		return send(ctx, pageKey(p), subject, text(p))
	}}
}

// Webhook returns a channel to target, which gets each page as JSON. target is a secret: the
// URL of most services holds a token.
func Webhook(target secret.Value) Channel {
	const hint = "check CRITICIZER_ONCALL_WEBHOOK_URL"
	service := post.Service{Name: "on-call webhook", Denied: hint, Invalid: hint}
	return Channel{"webhook", func(ctx context.Context, p failure.Page) error {
		r, err := post.JSON(target.Reveal(), pageKey(p), p)
		if err == nil {
			_, err = service.Send(ctx, r)
		}
		return err
	}}
}

// pageKey is the same for every attempt at one page.
func pageKey(p failure.Page) string { return fmt.Sprintf("criticizer-page-%d", p.ID) }

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
