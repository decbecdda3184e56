package activities

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/review"
)

// A Channel is a destination other than mail that is notified of reviews. Like a
// recipient it has a row in the outbox.
type Channel struct {
	Name review.Channel
	Post post
	// Wants selects the reviews that it is notified of. Default: all.
	Wants func(review.Report) bool
}

// prepareChannels adds the outbox rows of the channels that are to be notified of report:
// of a restricted changelist none, because their readers may not have access to it.
func (n *Notifier) prepareChannels(ctx context.Context, report review.Report) error {
	var names []review.Channel
	for _, c := range n.Channels {
		if !report.Restricted && (c.Wants == nil || c.Wants(report)) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return failed(report.Changelist, "prepare channels", n.Outbox.PrepareChannels(ctx, report.Changelist, report.Version, names))
}

// splitChannels divides the rows of a review into mails and open channels.
func splitChannels(rows []review.Delivery) (mails []review.Delivery, open []review.Channel) {
	for _, row := range rows {
		if c := row.Key.Channel(); c == review.ChannelMail {
			mails = append(mails, row)
		} else if isOpen(row) {
			open = append(open, c)
		}
	}
	return mails, open
}

func isOpen(row review.Delivery) bool {
	return row.NotifiedAt == nil && row.Status != review.DeliveryWaived
}

// Poster serves the queue of every channel, with the adapters of [Notifier].
type Poster struct {
	Notifier *Notifier
}

// ChannelParams is the input of [Poster.NotifyChannel].
type ChannelParams struct {
	StageParams
	Channel review.Channel `json:"channel"`
}

// NotifyChannel notifies one channel of a review once. Without an open outbox row for the
// channel it does nothing.
func (p *Poster) NotifyChannel(ctx context.Context, params ChannelParams) error {
	n, req := p.Notifier, params.Request
	rows, err := n.Outbox.PrepareDeliveries(ctx, req.Changelist, req.Version, nil) // adds none
	if err != nil {
		return failed(req.Changelist, "read outbox", err)
	}
	for _, row := range rows {
		if row.Key.Channel() != params.Channel || !isOpen(row) {
			continue
		}
		report, chosen, err := n.compose(ctx, params.StageParams)
		if err == nil {
			_, err = n.deliver(ctx, report, chosen.roles, row.ID)
		}
		if err != nil {
			return fmt.Errorf("notify %s of changelist %d: %w", params.Channel, req.Changelist, err)
		}
	}
	return nil
}
