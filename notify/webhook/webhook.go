// Package webhook posts a review's report as one message to a URL, in the form
// that Slack takes and many others with it.
//
// Such a service cannot be asked what it took. Each message carries a key for
// those that know it, and one that may have been taken is in doubt
// ([failure.DeliveryAmbiguous]) until an operator decides, or is posted again,
// as configured (review-notification 8.2).
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// patience bounds one request.
const patience = 30 * time.Second

// An OnAmbiguous says what becomes of a message that may have been taken.
type OnAmbiguous string

// The choices.
const (
	AmbiguousHold   OnAmbiguous = "hold"   // an operator decides
	AmbiguousResend OnAmbiguous = "resend" // post again: a second copy rather than none
)

// Config says where messages are posted.
type Config struct {
	// URL is a secret, for it is all that it takes to post. Required.
	URL secret.Value
	// OnAmbiguous defaults to AmbiguousHold.
	OnAmbiguous OnAmbiguous
}

// A Hook posts messages to one URL. It is safe for concurrent use.
type Hook struct {
	lg   *slog.Logger
	cfg  Config
	http *http.Client
}

// New returns a hook to the URL of cfg. Its errors have class
// [failure.ConfigInvalid] and do not hold the URL.
func New(lg *slog.Logger, cfg Config) (*Hook, error) {
	cfg.OnAmbiguous = cmp.Or(cfg.OnAmbiguous, AmbiguousHold)
	u, err := url.Parse(cfg.URL.Reveal())
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, failure.Errorf(failure.ConfigInvalid, "webhook configuration: URL is not an http address")
	case cfg.OnAmbiguous != AmbiguousHold && cfg.OnAmbiguous != AmbiguousResend:
		return nil, failure.Errorf(failure.ConfigInvalid, "webhook configuration: OnAmbiguous %q is unknown: want %s or %s",
			cfg.OnAmbiguous, AmbiguousHold, AmbiguousResend)
	}
	// A redirect would take the message elsewhere. On a connection that was used
	// before, the client would repeat a request with a key on its own.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	fresh := http.DefaultTransport.(*http.Transport).Clone()
	fresh.DisableKeepAlives = true
	return &Hook{lg, cfg, &http.Client{Timeout: patience, CheckRedirect: stay, Transport: fresh}}, nil
}

// Send posts report once, in an attempt that began at begun. The notification id
// is the idempotency token, for the service gives none.
func (h *Hook) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	body, err := json.Marshal(newMessage(report))
	if err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "encode webhook message of change %d: %w", k.Changelist, err)
	}
	ctx, cancel := context.WithDeadline(ctx, begun.Add(patience))
	defer cancel()
	if err := h.post(ctx, k.Token(), body); err != nil {
		return "", err
	}
	h.lg.InfoContext(ctx, "webhook message accepted", "changelist", int64(k.Changelist), "review_version", int(k.Version), "bytes", len(body))
	return "webhook-" + k.Token(), nil
}

func (h *Hook) post(ctx context.Context, key string, body []byte) error {
	if err := ctx.Err(); err != nil { // nothing was sent
		return failure.Errorf(failure.NetworkTimeout, "post to webhook: the attempt began too long ago: %w", err)
	}
	var begun atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { begun.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return failure.Errorf(failure.ConfigInvalid, "post to webhook: its URL is malformed")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Idempotency-Key", key)
	resp, err := h.http.Do(req)
	if err != nil {
		return unanswered(err, begun.Load())
	}
	_ = resp.Body.Close()
	return refused(resp)
}

// unanswered is the error of a request without an answer, of which begun tells
// whether any of it was sent. The client's own error would tell the URL.
func unanswered(err error, begun bool) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the rest is where to
	}
	if !begun {
		return failure.Errorf(failure.NetworkUnreachable, "post to webhook: it cannot be reached: %w", err)
	}
	return failure.Errorf(failure.DeliveryAmbiguous, "post to webhook: no answer, and it may have taken the message: %w", err)
}

// refused is the error of an answer that is not a yes. Its text may be
// anybody's and stays out.
func refused(resp *http.Response) error {
	if resp.StatusCode/100 == 2 {
		return nil
	}
	class, advice := verdict(resp.StatusCode)
	e := failure.Errorf(class, "post to webhook: it answered %d: %s", resp.StatusCode, advice)
	e.Upstream = fmt.Sprint(resp.StatusCode)
	e.RetryAfter = failure.RetryAfter(resp.Header, time.Now())
	return e
}

func verdict(status int) (class failure.Class, advice string) {
	switch {
	case status == http.StatusTooManyRequests:
		return failure.RateLimited, "it asks to post more slowly"
	case status == http.StatusServiceUnavailable:
		return failure.ServerBusy, "it takes nothing now"
	case status >= 500:
		return failure.DeliveryAmbiguous, "it failed, and may have taken the message before"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failure.AuthDenied, "make a new webhook and set CRITICIZER_WEBHOOK_URL to its URL"
	case status == http.StatusRequestEntityTooLarge:
		return failure.TooLarge, "it takes no message of this size"
	}
	return failure.ConfigInvalid, "check that the webhook still exists and takes messages as Slack does"
}

// Ping asks, posting nothing, whether anybody answers at the URL. Whether a message
// would be taken only a message can tell: what takes POST alone answers HEAD as it
// likes.
func (h *Hook) Ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, h.cfg.URL.Reveal(), http.NoBody)
	if err != nil {
		return failure.Errorf(failure.ConfigInvalid, "ask whether the webhook answers: its URL is malformed")
	}
	resp, err := h.http.Do(req)
	if err != nil {
		return unanswered(err, false)
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e := failure.Errorf(failure.UpstreamUnavailable, "ask whether the webhook answers: it answered %d", resp.StatusCode)
		e.RetryAfter = failure.RetryAfter(resp.Header, time.Now())
		return e
	}
	return nil
}

// Lookup says what is known of a message that may have been taken: nothing,
// ever. Absent means that a second copy was chosen over none.
func (h *Hook) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	if h.cfg.OnAmbiguous == AmbiguousResend {
		return review.Evidence{State: review.EvidenceAbsent, Source: "webhook.on_ambiguous"}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}
