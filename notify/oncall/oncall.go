// Package oncall pages a person about dead letters that need one at once: a
// replay that failed again for the same reason, a bug, a wrong configuration,
// a rejected credential (processing 8.1, 8.5).
//
// A page is a row of an outbox, written in the same transaction as its dead
// letter: paging neither delays the recording nor is lost with it. A [Pager]
// empties the outbox. A channel that accepted a page gets it a second time only
// if the process dies before it has marked that; the page's ID is the same then.
package oncall

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// Config says who is paged.
type Config struct {
	// Whether workers of stage workflows refuse to start, and criticizer doctor fails,
	// if no page can be sent. Set it in production.
	Required bool `yaml:"required" default:"false"`
	// Mail address that is notified, through the server of section mail.
	Address string `yaml:"address" check:"address"`
	// URL that receives each page as JSON. The whole URL is a secret because most
	// contain a token.
	WebhookURL secret.Value `yaml:"webhook_url"`
}

// Pages reports whether a page can be sent.
func (c Config) Pages() bool { return c.Address != "" || c.WebhookURL.IsSet() }

// Check implements the checks of package config.
func (c Config) Check(p *config.Problems) {
	if c.WebhookURL.IsSet() {
		p.URL("webhook_url", c.WebhookURL.Reveal())
	}
	p.Add(c.Required && !c.Pages(), "required", "is set, and no page can be sent", "set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL")
}

// Connections returns the connection to the webhook.
func (c Config) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("webhook_url", c.WebhookURL.Reveal(), "webhook_url", c.WebhookURL)}
}

// outbox keeps pages until every channel has accepted them.
type outbox interface {
	// ClaimPage returns a page that no other pager gets until the lease expires.
	ClaimPage(ctx context.Context, lease time.Duration) (page failure.Page, notified []string, attempt int, ok bool, err error)
	MarkPageAccepted(ctx context.Context, id int64, channel string) error
	MarkPageSent(ctx context.Context, id int64) error
	PostponePage(ctx context.Context, id int64, delay time.Duration) error
}

const (
	pollInterval   = 5 * time.Second  // of an empty outbox
	channelTimeout = 30 * time.Second // of one channel
	leaseMargin    = 30 * time.Second // added to the timeouts of all channels
)

// A Pager sends every page to every channel.
type Pager struct {
	lg       *slog.Logger
	outbox   outbox
	runURL   func(workflowID, runID string) string
	channels []Channel
}

// runbook is the page of the action for each class.
const runbook = "https://github.com/criticizer/criticizer/blob/main/docs/runbook.md#the-five-steps"

// New returns a pager. runURL returns the page of a run in Temporal's UI, or "". A pager without
// channels would mark pages as sent: do not run one, so that the pages stay in the outbox.
func New(lg *slog.Logger, pages outbox, runURL func(workflowID, runID string) string, channels ...Channel) *Pager {
	return &Pager{lg, pages, runURL, channels}
}

// Run empties the outbox until ctx ends. It polls an empty outbox.
func (p *Pager) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		for p.next(ctx) {
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// next handles one due page and reports whether there was one. A result that
// cannot be recorded is repeated when the lease expires.
func (p *Pager) next(ctx context.Context) bool {
	lease := leaseMargin + channelTimeout*time.Duration(len(p.channels))
	page, notified, attempt, ok, err := p.outbox.ClaimPage(ctx, lease)
	if err == nil && ok {
		page.RunbookURL, page.TemporalURL = runbook, p.runURL(page.WorkflowID, page.RunID)
		if p.notifyAll(ctx, page, notified, attempt) {
			err = p.outbox.MarkPageSent(ctx, page.ID)
		} else {
			err = p.outbox.PostponePage(ctx, page.ID, failure.Backoff(attempt, rand.Float64(), 0))
		}
	}
	if err != nil && ctx.Err() == nil {
		p.lg.WarnContext(ctx, "outbox of pages is unavailable", "error", err)
	}
	return err == nil && ok
}

// notifyAll notifies the channels that have not accepted the page yet and
// reports whether all channels have accepted it. The failure of one channel
// does not affect the others.
func (p *Pager) notifyAll(ctx context.Context, page failure.Page, notified []string, attempt int) bool {
	all := true
	for _, c := range p.channels {
		if slices.Contains(notified, c.Name) {
			continue
		}
		lg := p.lg.With("channel", c.Name, "page_id", page.ID, "changelist", page.Changelist, "attempt", attempt)
		limited, cancel := context.WithTimeout(ctx, channelTimeout)
		err := c.Notify(limited, page)
		cancel()
		if err == nil {
			lg.InfoContext(ctx, "on-call paged", "reason", string(page.Reason))
			err = p.outbox.MarkPageAccepted(ctx, page.ID, c.Name)
		}
		if err != nil {
			lg.ErrorContext(ctx, "on-call not paged, will be retried", "error", err)
			all = false
		}
	}
	return all
}
