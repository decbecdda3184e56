// Package webhook posts a review as one message to a URL, in the JSON that
// Slack and compatible services accept.
//
// Such a service has no query for the messages it accepted. Each message
// carries an idempotency key for services that honor one. [OnAmbiguous] decides about
// a message in doubt (notification 8.2).
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// OnAmbiguous is what happens to a message that may have been accepted: the service
// answered 500, 502 or 504, or not at all.
type OnAmbiguous string

// The choices of webhook.on_ambiguous.
const (
	Hold           OnAmbiguous = "hold"            // for an operator, after one attempt
	IdempotencyKey OnAmbiguous = "idempotency_key" // post again: the service drops a message whose key it knows
	Resend         OnAmbiguous = "resend"          // post again: a second copy is preferred to none
)

// Config selects the receiver.
type Config struct {
	// Whether reviews without findings are posted.
	Clean bool `yaml:"clean" default:"false"`
	// How to handle a message that may have been accepted, because a webhook has
	// no way to look it up: hold it for an operator; post it again with the same
	// idempotency_key, for a receiver that honors one; or resend it to any receiver.
	OnAmbiguous OnAmbiguous `yaml:"on_ambiguous" default:"hold" oneof:"hold idempotency_key resend"`
	// URL that is posted to. The whole URL is a secret because it authorizes to
	// post. Unset: nothing is posted.
	URL secret.Value `yaml:"url"`
}

// Check implements the checks of package config.
func (c Config) Check(p *config.Problems) {
	if c.URL.IsSet() {
		p.URL("url", c.URL.Reveal())
	}
}

// Connections returns the connection to the receiver.
func (c Config) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("url", c.URL.Reveal(), "url", c.URL)}
}

// A Client posts messages to one URL. It is safe for concurrent use.
type Client struct {
	lg          *slog.Logger
	url         secret.Value
	onAmbiguous OnAmbiguous
	keys        *evidence.Keys
	service     post.Service
}

// New returns a client of target, which is a secret: knowing the URL is enough to
// post. keys sign the idempotency key.
func New(lg *slog.Logger, target secret.Value, onAmbiguous OnAmbiguous, keys *evidence.Keys) *Client {
	return &Client{lg, target, onAmbiguous, keys, post.Service{
		Name:    "webhook",
		Denied:  "create a new webhook and set CRITICIZER_WEBHOOK_URL to its URL",
		Invalid: "check that the webhook still exists and accepts Slack messages",
	}}
}

// Send posts report once, in an attempt that started at begun. The service
// returns no id, so the notification id is derived from the key.
func (c *Client) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	token := c.keys.Token(k)
	r, err := post.JSON(c.url.Reveal(), token, newMessage(report))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithDeadline(ctx, begun.Add(post.Timeout))
	defer cancel()
	if _, err := c.service.Send(ctx, r); err != nil {
		return "", err
	}
	c.lg.InfoContext(ctx, "webhook message accepted", "changelist", int64(k.Changelist), "review_version", int(k.Version), "bytes", len(r.Body))
	return "webhook-" + token, nil
}

// Ping checks that a server answers at the URL, without posting. It cannot
// check that a message would be accepted: a URL for POST only may answer HEAD
// with any status.
func (c *Client) Ping(ctx context.Context) error {
	a, err := c.service.Do(ctx, post.Request{Method: http.MethodHead, URL: c.url.Reveal()})
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
func (c *Client) Lookup(_ context.Context, _ review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	repeats := c.onAmbiguous == IdempotencyKey && c.keys.Unchanged(since)
	if c.onAmbiguous == Resend || repeats {
		return review.Evidence{State: review.EvidenceAbsent, Source: "webhook.on_ambiguous: " + string(c.onAmbiguous), Repeats: repeats}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}
