package mail

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// An InboxProvider sends to the embedded inbox by SMTP and queries it by
// Message-ID.
type InboxProvider struct {
	*SMTPProvider
	inbox post.Service
}

// inboxSettle is how long after the start of an attempt an empty answer of the
// inbox proves nothing: an abandoned sender may be at work for half of that
// time. The inbox itself waits for its open transactions.
const inboxSettle = 10 * time.Second

// NewInboxProvider returns a provider for the inbox that cfg names by Host, Port
// and InboxURL.
func NewInboxProvider(lg *slog.Logger, cfg Config) (*InboxProvider, error) {
	smtp, err := NewSMTPProvider(lg, cfg)
	if err = errors.Join(err, cfg.requireKeys()); err != nil {
		return nil, err
	}
	return &InboxProvider{smtp.withSendLimit(inboxSettle / 2), post.Service{Name: "inbox", Invalid: "check mail.inbox_url"}}, nil
}

// An inboxRecord is the inbox's answer to a look-up.
type inboxRecord struct {
	Copies int `json:"copies"`
	// Settled is set if no transaction is open that was open when the request arrived.
	Settled bool `json:"settled"`
}

// Lookup implements [Provider]. The settle window is short, so Lookup waits for
// its end. Unknown then means that a transaction stays open.
func (p *InboxProvider) Lookup(ctx context.Context, k review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	evidence := review.Evidence{State: review.EvidenceUnknown, Source: "inbox", AskAgain: time.Now().Add(inboxSettle)}
	ref := p.cfg.messageRef(k, since)
	h, id, err := p.query(ctx, ref)
	if wait := inboxSettle - time.Since(since); err == nil && h.Copies == 0 && wait > 0 {
		select {
		case <-ctx.Done():
			return evidence, nil
		case <-time.After(min(wait, inboxSettle)):
			h, id, err = p.query(ctx, ref)
		}
	}
	switch {
	case err != nil:
		return evidence, err
	case h.Copies > 0:
		evidence = review.Evidence{State: review.EvidenceAccepted, Source: "inbox", NotificationID: id}
	case h.Settled && ref.covered:
		evidence = review.Evidence{State: review.EvidenceAbsent, Source: "inbox", Observed: true}
	}
	warnOfCopies(ctx, p.lg, id, h.Copies)
	return evidence, nil
}

// query asks for the ids of the message in turn, and returns the id that was found.
func (p *InboxProvider) query(ctx context.Context, ref messageRef) (h inboxRecord, id string, err error) {
	settled := true
	for _, token := range ref.tokens {
		id = messageID(token, ref.domain)
		query := url.Values{"message_id": {id}, "from": {ref.sender}, "to": {ref.recipient}}
		a, err := p.inbox.Send(ctx, post.Request{Method: http.MethodGet, URL: p.cfg.InboxURL + "/api/lookup?" + query.Encode()})
		if err != nil {
			return h, id, err
		}
		if err := p.inbox.Decode(a, &h); err != nil || h.Copies > 0 {
			return h, id, err
		}
		settled = settled && h.Settled
	}
	h.Settled = settled
	return h, id, nil
}
