package mail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	messagemail "github.com/emersion/go-message/mail"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// ResendConfig says which account at resend.com sends.
type ResendConfig struct {
	// URL of the API. Default: https://api.resend.com.
	URL string
	// APIKey of the account; one that may only send is enough. Required.
	APIKey secret.Value
	// OnAmbiguous defaults to AmbiguousHold.
	OnAmbiguous OnAmbiguous
}

func (c ResendConfig) withDefaults() ResendConfig {
	c.URL = strings.TrimSuffix(cmp.Or(c.URL, "https://api.resend.com"), "/")
	c.OnAmbiguous = cmp.Or(c.OnAmbiguous, AmbiguousHold)
	return c
}

func (c ResendConfig) validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return failure.Errorf(failure.ConfigInvalid, "mail configuration: URL is not an https address: want one such as https://api.resend.com")
	case !c.APIKey.IsSet():
		return failure.Errorf(failure.ConfigInvalid, "mail configuration: APIKey is not set")
	}
	return EvidenceConfig{OnAmbiguous: c.OnAmbiguous}.validate()
}

// A ResendProvider sends through the HTTP API of resend.com, which takes an
// idempotency key: what was accepted under a key is not sent again while the
// key lives. So a message in doubt is not looked up but sent again.
type ResendProvider struct {
	cfg  ResendConfig
	http *http.Client
}

const (
	// resendKeyLife is a little less than the 24 hours that a key lives. A row
	// whose every attempt for a day ended in doubt could outlive it.
	resendKeyLife = 23 * time.Hour
	// resendPatience bounds one request.
	resendPatience = time.Minute
	// maxResendAnswer is far more than an answer has.
	maxResendAnswer = 64 << 10
)

// NewResendProvider returns a provider for the account of cfg.
func NewResendProvider(cfg ResendConfig) (*ResendProvider, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	// A redirect would take message and key elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &ResendProvider{cfg, &http.Client{Timeout: resendPatience, CheckRedirect: stay}}, nil
}

// Lookup implements [Provider]. Absent means that sending again does no harm:
// the key of the attempt still lives.
func (p *ResendProvider) Lookup(_ context.Context, _ review.DeliveryKey, since time.Time) (review.Evidence, error) {
	if time.Since(since) < resendKeyLife || p.cfg.OnAmbiguous == AmbiguousResend {
		return review.Evidence{State: review.EvidenceAbsent, Source: "idempotency key"}, nil
	}
	return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
}

// Send implements [Provider]. The notification id is Resend's.
func (p *ResendProvider) Send(ctx context.Context, m Message) (notificationID string, err error) {
	email, err := takeApart(m)
	if err != nil {
		return "", err
	}
	resp, err := p.post(ctx, cmp.Or(email.Headers[headerKey], m.ID), email)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer := struct{ ID, Name, Message string }{}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxResendAnswer)).Decode(&answer)
	if resp.StatusCode/100 != 2 {
		return "", refusedByResend(resp, answer.Name, answer.Message)
	}
	if err != nil || answer.ID == "" {
		return "", failure.Errorf(failure.DeliveryAmbiguous, "send mail: Resend accepted the message and its answer cannot be read")
	}
	return answer.ID, nil
}

// Ping asks for a message that cannot be sent, so that only what stands in the
// way of every message is an error: a key that may only send may ask nothing
// else.
func (p *ResendProvider) Ping(ctx context.Context) error {
	resp, err := p.post(ctx, "", resendEmail{})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer := struct{ Name, Message string }{}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxResendAnswer)).Decode(&answer)
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		return nil
	}
	return refusedByResend(resp, answer.Name, answer.Message)
}

// post without a key asks for nothing that could be accepted.
func (p *ResendProvider) post(ctx context.Context, key string, email resendEmail) (*http.Response, error) {
	body, err := json.Marshal(email)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "send mail: encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.cfg.URL+"/emails", bytes.NewReader(body))
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "send mail: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+p.cfg.APIKey.Reveal())
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := p.http.Do(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" || err != nil && key == "" {
		return nil, failure.New(unanswered(err), fmt.Errorf("send mail: reach Resend: %w", err))
	}
	if err != nil {
		return nil, failure.Errorf(failure.DeliveryAmbiguous, "send mail: no answer from Resend, which may have accepted the message: %w", err)
	}
	return resp, nil
}

// A resendEmail is a message as the API takes it.
type resendEmail struct {
	From    string            `json:"from"`
	To      []string          `json:"to"`
	Subject string            `json:"subject"`
	Text    string            `json:"text"`
	HTML    string            `json:"html,omitempty"`
	Headers map[string]string `json:"headers"`
}

// takeApart returns the parts of a rendered message. The API sets Date,
// Message-ID and what concerns MIME itself.
func takeApart(m Message) (resendEmail, error) {
	broken := func(err error) error {
		return failure.Errorf(failure.InvariantViolated, "send mail: take the message apart: %w", err)
	}
	r, err := messagemail.CreateReader(bytes.NewReader(m.Raw))
	if err != nil {
		return resendEmail{}, broken(err)
	}
	email := resendEmail{From: r.Header.Get("From"), To: []string{m.To}, Headers: map[string]string{}}
	if email.Subject, err = r.Header.Subject(); err != nil {
		return resendEmail{}, broken(err)
	}
	for _, name := range []string{headerKey, "X-Criticizer-Outcome", "References", "In-Reply-To", "Auto-Submitted", "X-Auto-Response-Suppress", "List-Id"} {
		if value := r.Header.Get(name); value != "" {
			email.Headers[name] = value
		}
	}
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return email, nil
		}
		if err != nil {
			return resendEmail{}, broken(err)
		}
		kind, body := partOf(part)
		if kind == "text/html" {
			email.HTML = string(body)
		} else {
			email.Text = string(body)
		}
	}
}

// refusedByResend is the error of an answer that says no. Its text may quote
// addresses and stays out.
func refusedByResend(resp *http.Response, name, message string) error {
	class, advice := resendVerdict(resp.StatusCode, name, message)
	e := failure.Errorf(class, "send mail: Resend answered %s: %s", resp.Status, advice)
	e.Upstream = fmt.Sprint(resp.StatusCode)
	e.RetryAfter = failure.RetryAfter(resp.Header, time.Now())
	return e
}

func resendVerdict(status int, name, message string) (class failure.Class, advice string) {
	switch {
	case status == http.StatusConflict && name == "concurrent_idempotent_requests":
		return failure.DeliveryAmbiguous, "an earlier attempt is still at work"
	case status == http.StatusConflict:
		return failure.DeliveryAmbiguous, "another text was accepted under the same key: find out from Resend which"
	case status == http.StatusTooManyRequests && strings.HasSuffix(name, "quota_exceeded"):
		return failure.QuotaExhausted, "raise the account's quota"
	case status == http.StatusTooManyRequests:
		return failure.RateLimited, "it asks to send more slowly"
	case status >= 500:
		return failure.DeliveryAmbiguous, "it failed, and may have accepted the message before"
	case status == http.StatusUnauthorized, status == http.StatusForbidden && name != "validation_error":
		return failure.AuthDenied, "check its API key"
	case status == http.StatusRequestEntityTooLarge:
		return failure.TooLarge, "it takes no message of this size"
	case status == http.StatusUnprocessableEntity && (name == "invalid_to_address" || strings.Contains(message, "`to`")):
		return failure.RecipientRejected, "correct or waive the recipient"
	}
	return failure.ConfigInvalid, "check the sender, its domain and the address of the API"
}
