// Package webhook posts a review as one message to a URL, in the JSON that
// Slack and compatible services accept.
//
// Such a service has no query for the messages it accepted. Each message
// carries an idempotency key for services that honor one. [Doubt] decides about
// a message in doubt (notification 8.2).
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// A Doubt is what happens to a message that may have been accepted: the service
// answered 500, 502 or 504, or not at all.
type Doubt string

// The choices of webhook.on_ambiguous.
const (
	Hold           Doubt = "hold"            // for an operator, after one attempt
	IdempotencyKey Doubt = "idempotency_key" // post again: the service drops a message whose key it knows
	Resend         Doubt = "resend"          // post again: a second copy is preferred to none
)

// A Hook posts messages to one URL. It is safe for concurrent use.
type Hook struct {
	lg      *slog.Logger
	url     secret.Value
	doubt   Doubt
	keys    *evidence.Keys
	service post.Service
}

// New returns a hook to target, which is a secret: knowing the URL is enough to
// post. keys sign the idempotency key.
func New(lg *slog.Logger, target secret.Value, doubt Doubt, keys *evidence.Keys) *Hook {
	return &Hook{lg, target, doubt, keys, post.Service{
		Name:    "webhook",
		Denied:  "create a new webhook and set CRITICIZER_WEBHOOK_URL to its URL",
		Invalid: "check that the webhook still exists and accepts Slack messages",
	}}
}

// Send posts report once, in an attempt that started at begun. The service
// returns no id, so the notification id is derived from the key.
func (h *Hook) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	token := h.keys.Token(k)
	r, err := post.JSON(h.url.Reveal(), token, newMessage(report))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithDeadline(ctx, begun.Add(post.Timeout))
	defer cancel()
	if _, err := h.service.Send(ctx, r); err != nil {
		return "", err
	}
	h.lg.InfoContext(ctx, "webhook message accepted", "changelist", int64(k.Changelist), "review_version", int(k.Version), "bytes", len(r.Body))
	return "webhook-" + token, nil
}

// Ping checks that a server answers at the URL, without posting. It cannot
// check that a message would be accepted: a URL for POST only may answer HEAD
// with any status.
func (h *Hook) Ping(ctx context.Context) error {
	a, err := h.service.Do(ctx, post.Request{Method: http.MethodHead, URL: h.url.Reveal()})
	if err != nil {
		return err
	}
	switch a.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e := failure.Errorf(failure.UpstreamUnavailable, "ping webhook: it answered %d", a.Status)
		e.RetryAfter = failure.RetryAfter(a.Header, time.Now())
		return e
	}
	return nil
}

// Lookup returns evidence for a message in doubt. The service has none, so the
// answer is absent if the message is to be posted again, else unknown. After the
// keys were rotated the message would have another idempotency key.
func (h *Hook) Lookup(_ context.Context, _ review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	repeats := h.doubt == IdempotencyKey && h.keys.Unchanged(since)
	if h.doubt == Resend || repeats {
		return review.Evidence{State: review.EvidenceAbsent, Source: "webhook.on_ambiguous: " + string(h.doubt), Repeats: repeats}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}
