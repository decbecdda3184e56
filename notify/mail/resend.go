package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// ResendConfig selects the account at resend.com.
type ResendConfig struct {
	// URL of the API, usually https://api.resend.com. Required.
	URL string
	// APIKey of the account; the permission to send is enough. Required.
	APIKey secret.Value
	// ResendInDoubt is as in [EvidenceConfig].
	ResendInDoubt bool
	// Keys sign the messages. Required.
	Keys *evidence.Keys
}

// A ResendProvider sends through the HTTP API of resend.com. The API has an
// idempotency key: a message accepted under a key is not sent again while the
// key is valid. A message in doubt is therefore not looked up but sent again.
type ResendProvider struct {
	cfg     ResendConfig
	service post.Service
}

// resendKeyLife is slightly below the 24 hours that a key is valid. If every
// attempt at a delivery ends in doubt, its key can expire.
const resendKeyLife = 23 * time.Hour

// NewResendProvider returns a provider for the account of cfg.
func NewResendProvider(cfg ResendConfig) (*ResendProvider, error) {
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	if u, err := url.Parse(cfg.URL); err != nil || u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, configError("the URL of Resend is not an https address: the API key must not cross a network in clear text")
	}
	return &ResendProvider{cfg, post.Service{
		Name:      "Resend",
		Denied:    "check its API key",
		Invalid:   "check the sender, its domain and the address of the API",
		Authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+cfg.APIKey.Reveal()) },
		Classify:  classifyResend,
	}}, nil
}

// Lookup implements [Provider]. It asks for a message whose id is known. For one without
// an id, or if the API key may only send, absent means that sending again is safe: the
// idempotency key of the attempt is still valid, and the next attempt has the same.
func (p *ResendProvider) Lookup(ctx context.Context, k review.DeliveryKey, id string, since time.Time) (review.Evidence, error) {
	if id != "" {
		if e, asked, err := p.askFor(ctx, k, id); asked {
			return e, err
		}
	}
	valid := time.Since(since) < resendKeyLife && p.cfg.Keys.Unchanged(since)
	if valid || p.cfg.ResendInDoubt {
		return review.Evidence{State: review.EvidenceAbsent, Source: "idempotency key", Repeats: valid}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}

// askFor asks for the message with Resend's id. asked is false if the API key may only send.
func (p *ResendProvider) askFor(ctx context.Context, k review.DeliveryKey, id string) (e review.Evidence, asked bool, err error) {
	e = review.Evidence{State: review.EvidenceUnknown, Source: "resend", NotificationID: id}
	a, err := p.service.Send(ctx, post.Request{Method: http.MethodGet, URL: p.cfg.URL + "/emails/" + url.PathEscape(id)})
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return e, false, nil
	case http.StatusNotFound:
		return review.Evidence{State: review.EvidenceAbsent, Source: e.Source, Observed: true}, true, nil
	}
	var email struct {
		To        []string
		LastEvent string `json:"last_event"`
	}
	if err == nil {
		err = p.service.Decode(a, &email)
	}
	switch {
	case err != nil || !slices.ContainsFunc(email.To, func(to string) bool { return strings.EqualFold(to, k.Recipient) }):
	case slices.Contains([]string{"bounced", "failed", "suppressed", "canceled"}, email.LastEvent):
		e.State = review.EvidenceRejected
	default:
		e.State = review.EvidenceAccepted
	}
	return e, true, err
}

// A resendEmail has the JSON of the API, which sets Date, Message-ID and the MIME
// fields itself.
type resendEmail struct {
	From    string            `json:"from"`
	To      []string          `json:"to"`
	Subject string            `json:"subject"`
	Text    string            `json:"text"`
	HTML    string            `json:"html,omitempty"`
	Headers map[string]string `json:"headers"`
}

// Send implements [Provider]. The notification id is Resend's.
func (p *ResendProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	r, err := post.JSON(p.cfg.URL+"/emails", cmp.Or(m.Key, m.ID), resendEmail{
		From: m.From.String(), To: []string{m.To}, Subject: m.Subject, Text: m.Text, HTML: m.HTML, Headers: m.Header,
	})
	if err != nil {
		return "", err
	}
	a, err := p.service.Send(ctx, r)
	if err != nil {
		return "", err
	}
	var answer struct{ ID string }
	if err := p.service.Decode(a, &answer); err != nil {
		return "", err
	}
	if answer.ID == "" {
		return "", failure.Errorf(failure.DeliveryAmbiguous, "send mail: Resend accepted the message without an id")
	}
	return answer.ID, nil
}

// Ping posts a message without content, which the API rejects after it has
// checked the key: a key that may only send allows no other request.
func (p *ResendProvider) Ping(ctx context.Context) error {
	r, err := post.JSON(p.cfg.URL+"/emails", "", resendEmail{})
	if err != nil {
		return err
	}
	r.Delivers = false
	a, err := p.service.Send(ctx, r)
	if a.Status == http.StatusBadRequest || a.Status == http.StatusUnprocessableEntity {
		return nil
	}
	return err
}

// classifyResend returns the class of answers for which the API has names of its
// own, and an empty class for all others.
func classifyResend(a post.Answer) (class failure.Class, hint string) {
	var problem struct{ Name, Message string }
	_ = json.Unmarshal(a.Body, &problem)
	switch {
	case a.Status == http.StatusConflict && problem.Name == "concurrent_idempotent_requests":
		return failure.DeliveryAmbiguous, "an earlier attempt is still being processed"
	case a.Status == http.StatusConflict:
		return failure.DeliveryAmbiguous, "another text was accepted under the same key: look it up at resend.com"
	case a.Status == http.StatusTooManyRequests && strings.HasSuffix(problem.Name, "quota_exceeded"):
		return failure.QuotaExhausted, "raise the account's quota"
	case a.Status == http.StatusForbidden && problem.Name == "validation_error":
		return failure.ConfigInvalid, "verify the domain of the sender at resend.com"
	case a.Status == http.StatusUnprocessableEntity && (problem.Name == "invalid_to_address" || strings.Contains(problem.Message, "`to`")):
		return failure.RecipientRejected, "correct or waive the recipient"
	}
	return "", ""
}
