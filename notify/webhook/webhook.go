// Package webhook posts a review as one message to a URL, in the JSON that
// Slack and compatible services accept.
//
// Such a service has no query for the messages it accepted. Each message
// carries an idempotency key for services that support one. A message in doubt
// is held for an operator or posted again, as configured
// (notification 8.2).
package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// An OnAmbiguous selects what happens to a message in doubt.
type OnAmbiguous string

// The values of OnAmbiguous.
const (
	AmbiguousHold   OnAmbiguous = "hold"   // an operator decides
	AmbiguousResend OnAmbiguous = "resend" // post again: prefer a second copy to none
)

// Config selects where messages are posted.
type Config struct {
	// URL is a secret: knowing it is enough to post. Required.
	URL secret.Value
	// OnAmbiguous defaults to AmbiguousHold.
	OnAmbiguous OnAmbiguous
}

// A Hook posts messages to one URL. It is safe for concurrent use.
type Hook struct {
	lg      *slog.Logger
	cfg     Config
	service post.Service
}

// New returns a hook to the URL of cfg. Its errors have class
// [failure.ConfigInvalid] and do not contain the URL.
func New(lg *slog.Logger, cfg Config) (*Hook, error) {
	cfg.OnAmbiguous = cmp.Or(cfg.OnAmbiguous, AmbiguousHold)
	switch {
	case post.ParseURL(cfg.URL.Reveal()) == nil:
		return nil, failure.Errorf(failure.ConfigInvalid, "webhook configuration: URL is not an http address")
	case cfg.OnAmbiguous != AmbiguousHold && cfg.OnAmbiguous != AmbiguousResend:
		return nil, failure.Errorf(failure.ConfigInvalid, "webhook configuration: OnAmbiguous %q is unknown: want %s or %s",
			cfg.OnAmbiguous, AmbiguousHold, AmbiguousResend)
	}
	return &Hook{lg, cfg, post.Service{
		Name:    "webhook",
		Denied:  "create a new webhook and set CRITICIZER_WEBHOOK_URL to its URL",
		Invalid: "check that the webhook still exists and accepts Slack messages",
	}}, nil
}

// Send posts report once, in an attempt that started at begun. The service
// returns no id, so the notification id is derived from the key.
func (h *Hook) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	r, err := post.JSON(h.cfg.URL.Reveal(), k.Token(), newMessage(report))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithDeadline(ctx, begun.Add(post.Timeout))
	defer cancel()
	if _, err := h.service.Send(ctx, r); err != nil {
		return "", err
	}
	h.lg.InfoContext(ctx, "webhook message accepted", "changelist", int64(k.Changelist), "review_version", int(k.Version), "bytes", len(r.Body))
	return "webhook-" + k.Token(), nil
}

// Ping checks that a server answers at the URL, without posting. It cannot
// check that a message would be accepted: a URL for POST only may answer HEAD
// with any status.
func (h *Hook) Ping(ctx context.Context) error {
	a, err := h.service.Do(ctx, post.Request{Method: http.MethodHead, URL: h.cfg.URL.Reveal()})
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
// answer is unknown, or absent if OnAmbiguous is AmbiguousResend.
func (h *Hook) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	if h.cfg.OnAmbiguous == AmbiguousResend {
		return review.Evidence{State: review.EvidenceAbsent, Source: "webhook.on_ambiguous"}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}
