package oncall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A Webhook posts pages as JSON to a URL.
type Webhook struct {
	url    secret.Value
	client *http.Client
}

// NewWebhook returns a channel to the URL, which is a secret: that of most
// services holds a token. Redirects are not followed, for the same reason.
func NewWebhook(target secret.Value) *Webhook {
	return &Webhook{target, &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name implements [Channel].
func (w *Webhook) Name() string { return "webhook" }

// Tell implements [Channel]. Accepted is what is answered with a 2xx status.
// The header Idempotency-Key is the same for every attempt at one page.
func (w *Webhook) Tell(ctx context.Context, p failure.Page) error {
	body, err := json.Marshal(p)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.Reveal(), bytes.NewReader(body))
	if err != nil {
		return failure.Errorf(failure.ConfigInvalid, "post page: the webhook's URL is malformed")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprintf("criticizer-page-%d", p.ID))
	response, err := w.client.Do(request)
	if err != nil {
		return failure.Errorf(failure.NetworkUnreachable, "post page: %w", withoutURL(err))
	}
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return failure.Errorf(failure.UpstreamUnavailable, "post page: the webhook answered %d", response.StatusCode)
	}
	return nil
}

// withoutURL takes the secret out of the client's error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
