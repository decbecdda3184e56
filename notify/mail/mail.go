// Package mail renders a review's report as one digest, sends it, and looks up
// whether it was sent.
//
// A mail server has no idempotency token: if the connection breaks while it
// confirms a message, nobody knows whether it took it. So every attempt at one
// delivery sends the same bytes under the same Message-ID, only the server's own
// reply counts as sent, and what stays in doubt is [failure.DeliveryAmbiguous]
// and settled by [Postman.Lookup], never by sending again (review-notification
// 6.4, 8.2).
//
// A [Postman] does both, with a [Provider]. What a digest says is made by [Render]
// from newDigest in digest.go; who sends it is one of
//
//   - [SMTPProvider]: a mail server, which cannot be asked what it took
//   - [EvidencedProvider]: a mail server with evidence from its journal, bounces
//     or log, of which each has a file
//   - [InboxProvider]: the embedded inbox
//   - [ResendProvider]: the API of resend.com
package mail

import (
	"context"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/review"
)

// A Message is one rendered digest for one recipient.
type Message struct {
	// ID is the Message-ID without angle brackets. It follows from the
	// delivery key alone, so it can be derived again after a crash.
	ID string
	// From and To are the envelope: bare addresses.
	From, To string
	// Raw is the message, headers and body, with CRLF between lines.
	Raw []byte
	// Begun is when the attempt began, by this machine's clock. Who comes later
	// relies on it that a slow attempt has been given up. Zero: now.
	Begun time.Time
}

// A Provider takes messages in and may know which it took.
type Provider interface {
	// Send hands m over and returns the provider's id for it. An error has a
	// class of package failure; with DeliveryAmbiguous the message may have
	// been accepted, with any other it was not.
	Send(ctx context.Context, m Message) (notificationID string, err error)
	// Lookup says whether the message of k was accepted. since is when its
	// last attempt began: absence counts only when the provider's settle
	// window after it is over.
	Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error)
}

// A Postman renders digests and hands them to a provider.
type Postman struct {
	lg       *slog.Logger
	provider Provider
	cfg      Config
}

// New returns a Postman that sends as cfg.From. How to reach a server is the
// provider's business.
func New(lg *slog.Logger, provider Provider, cfg Config) (*Postman, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validateSender(); err != nil {
		return nil, err
	}
	return &Postman{lg, provider, cfg}, nil
}

// Send renders report for the recipient of k and sends it once, in an attempt
// that began at begun. The notification id is the Message-ID. Errors are those
// of [Render] and of [Provider.Send]; none holds an address.
func (p *Postman) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	m, err := Render(report, k, p.cfg.From, p.cfg.MessageIDDomain)
	if err != nil {
		return "", err
	}
	m.Begun = begun
	id, err := p.provider.Send(ctx, m)
	if err != nil {
		return "", err
	}
	p.lg.InfoContext(ctx, "mail accepted",
		"changelist", int64(k.Changelist), "review_version", int(k.Version), "notification_id", id, "bytes", len(m.Raw))
	return id, nil
}

// Lookup says whether the message of k was accepted (review-notification 8.2).
// since is when its last attempt began.
func (p *Postman) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	return p.provider.Lookup(ctx, k, since)
}
