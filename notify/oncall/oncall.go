// Package oncall calls a person about dead letters that want one at once: a
// replay that failed again for the same reason, a bug, a bad configuration
// (criticizer-processing 8.1, 8.5), and a credential that is refused.
//
// A page is a row of an outbox, written together with its dead letter, so
// paging neither delays the recording nor gets lost with it. A [Pager] empties
// the outbox. A channel that accepted a page may be told again only if the
// process dies before it has noted so; the page's ID is then the same.
package oncall

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Channel is one way to reach the person on call.
type Channel interface {
	// Name tells channels apart in the outbox. It is stored: never rename.
	Name() string
	// Tell returns nil once the page was accepted. Every error is retried; its
	// text is logged, so it holds no address and no secret.
	Tell(ctx context.Context, p failure.Page) error
}

// outbox keeps pages until every channel has accepted them.
type outbox interface {
	// ClaimPage returns a page that nobody else is given until lease is over.
	ClaimPage(ctx context.Context, lease time.Duration) (page failure.Page, told []string, attempt int, ok bool, err error)
	MarkPageTold(ctx context.Context, id int64, channel string) error
	MarkPageSent(ctx context.Context, id int64) error
	PostponePage(ctx context.Context, id int64, delay time.Duration) error
}

const (
	pause     = 5 * time.Second  // between two looks into an empty outbox
	patience  = 30 * time.Second // with one channel
	leaseOver = 30 * time.Second // beyond the patience with all channels
)

// A Pager tells every page to every channel.
type Pager struct {
	lg       *slog.Logger
	outbox   outbox
	channels []Channel
}

// New returns a pager. Without a channel it would call nobody: do not run it,
// and the pages wait in the outbox.
func New(lg *slog.Logger, pages outbox, channels ...Channel) *Pager {
	return &Pager{lg, pages, channels}
}

// Run empties the outbox until ctx ends, and looks again every few seconds.
func (p *Pager) Run(ctx context.Context) {
	tick := time.NewTicker(pause)
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

// next handles one page that is due and reports whether there was one. What it
// cannot write down is repeated when the lease is over.
func (p *Pager) next(ctx context.Context) bool {
	lease := leaseOver + patience*time.Duration(len(p.channels))
	page, told, attempt, ok, err := p.outbox.ClaimPage(ctx, lease)
	if err == nil && ok {
		if p.tellAll(ctx, page, told, attempt) {
			err = p.outbox.MarkPageSent(ctx, page.ID)
		} else {
			err = p.outbox.PostponePage(ctx, page.ID, failure.Backoff(attempt, rand.Float64(), 0))
		}
	}
	if err != nil && ctx.Err() == nil {
		p.lg.WarnContext(ctx, "outbox of pages cannot be used", "error", err)
	}
	return err == nil && ok
}

// tellAll tells the channels that have not accepted the page yet and reports
// whether all have now. One that fails does not keep the others from it.
func (p *Pager) tellAll(ctx context.Context, page failure.Page, told []string, attempt int) bool {
	all := true
	for _, c := range p.channels {
		if slices.Contains(told, c.Name()) {
			continue
		}
		lg := p.lg.With("channel", c.Name(), "page_id", page.ID, "changelist", page.Changelist, "attempt", attempt)
		err := p.tell(ctx, c, page)
		if err == nil {
			lg.InfoContext(ctx, "on-call paged", "reason", string(page.Reason))
			err = p.outbox.MarkPageTold(ctx, page.ID, c.Name())
		}
		if err != nil {
			lg.ErrorContext(ctx, "on-call not paged, will be tried again", "error", err)
			all = false
		}
	}
	return all
}

func (p *Pager) tell(ctx context.Context, c Channel, page failure.Page) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Tell(ctx, page)
}
