// Package webhook posts a review as one message to a URL, in the JSON that
// Slack and compatible services accept.
//
// Such a service has no query for the messages it accepted. A message that it answers with 5xx
// is posted again (processing 8.1), one without an answer is held (notification 8.2). All posts of
// a message have the same idempotency key, in the header and in the body, so that a receiver can
// drop what it knows.
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

// Config selects the receiver.
type Config struct {
	// Which reviews are posted.
	Filter post.Filter `yaml:",inline"`
	// Only reviews with a finding of this severity or a worse one. low: also partial and
	// not_reviewed ones without findings. clean: all.
	Severity review.Severity `yaml:"severity" default:"low" oneof:"critical high medium low clean"`
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
	lg      *slog.Logger
	url     secret.Value
	keys    *evidence.Keys
	service post.Service
}

// New returns a client of target, which is a secret: knowing the URL is enough to
// post. keys sign the idempotency key.
func New(lg *slog.Logger, target secret.Value, keys *evidence.Keys) *Client {
	return &Client{lg, target, keys, post.Service{
		Name:    "webhook",
		Denied:  "create a new webhook and set CRITICIZER_WEBHOOK_URL to its URL",
		Invalid: "check that the webhook still exists and accepts Slack messages",
	}}
}

// Send posts report once, in an attempt that started at begun. The service
// returns no id, so the notification id is derived from the key.
func (c *Client) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	token := c.keys.Token(k)
	r, err := post.JSON(c.url.Reveal(), token, newMessage(report, token))
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

// Lookup returns unknown: the service has no query. A message that got no answer is held.
func (c *Client) Lookup(context.Context, review.DeliveryKey, string, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}
