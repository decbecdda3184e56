package activities

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// A Channel is one place besides the mailboxes where reviews are told. It has a
// row of the outbox like any recipient.
type Channel struct {
	Name review.Channel
	Post post
	// Clean reviews are told too.
	Clean bool
}

// prepareChannels adds the rows of the channels that are to hear of report.
func (n *Notifying) prepareChannels(ctx context.Context, report review.Report) error {
	var names []review.Channel
	for _, c := range n.Channels {
		if c.Clean || report.Outcome != review.OutcomeClean {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := n.Outbox.PrepareChannels(ctx, report.Changelist, report.Version, names); err != nil {
		return fmt.Errorf("prepare channels of changelist %d: %w", report.Changelist, err)
	}
	return nil
}

// postFor is what tells the recipient of row. A channel that was taken out of
// the configuration may still have open rows.
func (n *Notifying) postFor(row review.Delivery) (post, error) {
	name := row.Key.Channel()
	if name == review.ChannelMail {
		return n.Post, nil
	}
	for _, c := range n.Channels {
		if c.Name == name {
			return c.Post, nil
		}
	}
	return nil, failure.Errorf(failure.ConfigInvalid,
		"outbox row %d is for channel %s, which is not configured: configure it, or waive the delivery", row.ID, name)
}
