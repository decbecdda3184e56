package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An InboxProvider sends to the embedded inbox by SMTP and, unlike a bare mail
// server, can ask it by Message-ID what it holds.
type InboxProvider struct {
	*SMTPProvider
	lg   *slog.Logger
	http *http.Client
}

// NewInboxProvider returns a provider for the inbox that cfg names by Host,
// Port and InboxURL.
func NewInboxProvider(lg *slog.Logger, cfg Config) (*InboxProvider, error) {
	smtp, err := NewSMTPProvider(lg, cfg)
	if err != nil {
		return nil, err
	}
	if err := smtp.cfg.validateInbox(); err != nil {
		return nil, err
	}
	return &InboxProvider{smtp.handingOverWithin(inboxSettle / 2), lg, &http.Client{Timeout: inboxPatience}}, nil
}

const (
	// inboxSettle is how long after the begin of an attempt the inbox's word
	// that it holds nothing is not believed: the sender, though given up on,
	// may still be at work, for half of it. The inbox itself waits for the
	// transactions it has open, so the time need not cover them.
	inboxSettle = 10 * time.Second
	// inboxPatience bounds one question to the inbox.
	inboxPatience = 10 * time.Second
)

// A holding is the inbox's answer to a look-up.
type holding struct {
	Copies int `json:"copies"`
	// Settled says that no transaction that was open at the time of the
	// question is still open.
	Settled bool `json:"settled"`
}

// Lookup implements [Provider]. The settle window is short enough to wait for
// its end, so unknown means that a transaction has been open for long.
func (p *InboxProvider) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	evidence := review.Evidence{State: review.EvidenceUnknown, Source: "inbox", AskAgain: time.Now().Add(inboxSettle)}
	id := messageID(k, p.cfg.MessageIDDomain)
	h, err := p.ask(ctx, id)
	if wait := inboxSettle - time.Since(since); err == nil && h.Copies == 0 && wait > 0 {
		select {
		case <-ctx.Done():
			return evidence, nil
		case <-time.After(min(wait, inboxSettle)):
			h, err = p.ask(ctx, id)
		}
	}
	switch {
	case err != nil:
		return evidence, err
	case h.Copies > 0:
		evidence.State, evidence.NotificationID = review.EvidenceAccepted, id
		evidence.AskAgain = time.Time{}
	case h.Settled:
		evidence.State, evidence.Observed, evidence.AskAgain = review.EvidenceAbsent, true, time.Time{}
	}
	if h.Copies > 1 {
		p.lg.WarnContext(ctx, "mail was accepted more than once",
			"changelist", int64(k.Changelist), "review_version", int(k.Version), "notification_id", id, "copies", h.Copies)
	}
	return evidence, nil
}

// ask puts the question to the inbox.
func (p *InboxProvider) ask(ctx context.Context, id string) (h holding, err error) {
	u := p.cfg.InboxURL + "/api/lookup?" + url.Values{"message_id": {id}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return h, failure.Errorf(failure.ConfigInvalid, "look up mail: InboxURL: %w", err)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return h, failure.New(unanswered(err), fmt.Errorf("look up mail: ask the inbox: %w", err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		e := failure.Errorf(failure.UpstreamUnavailable, "look up mail: the inbox answered %s: check InboxURL and the inbox's log", resp.Status)
		e.Upstream = resp.Status
		return h, e
	}
	const maxAnswer = 1 << 20
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&h); err != nil {
		return h, failure.Errorf(failure.UpstreamUnavailable, "look up mail: read the inbox's answer: %w", err)
	}
	return h, nil
}
