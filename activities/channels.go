package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
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

// ChannelQueue is the task queue of one channel. Each has its own, so that one
// that is down is braked and retried alone, and never keeps a mail waiting.
func ChannelQueue(c review.Channel) string { return QueueBookkeeping + "-" + string(c) }

// OpenBreakers are the task queues that can be braked: what they are named for
// talks to something outside.
func OpenBreakers() []string {
	return []string{QueueFetch, QueueRedact, QueueLLM, QueueNotify, ChannelQueue(review.ChannelWebhook), ChannelQueue(review.ChannelSwarm)}
}

// WatchedQueues are the task queues of which people are told how much waits there: those
// that can be braked, behind the one in which reviews begin.
func WatchedQueues() []string { return append([]string{QueueBookkeeping}, OpenBreakers()...) }

// A ChannelRow is a row of the outbox whose channel is still to be told.
type ChannelRow struct {
	Channel review.Channel `json:"channel"`
	Row     int64          `json:"row"`
}

// apart divides the rows of a review into those of people, and the channels that
// are still to be told.
func apart(rows []review.Delivery) (mails []review.Delivery, open []ChannelRow) {
	for _, row := range rows {
		switch c := row.Key.Channel(); {
		case c == review.ChannelMail:
			mails = append(mails, row)
		case row.NotifiedAt == nil && row.Status != review.DeliveryWaived:
			open = append(open, ChannelRow{c, row.ID})
		}
	}
	return mails, open
}

// channelsOpen is the error of mails, of a review whose channels are to be told
// all the same.
type channelsOpen struct {
	error
	open []ChannelRow
}

func (e channelsOpen) Unwrap() error { return e.error }

func (e channelsOpen) detail() any { return e.open }

// OpenChannels are the channels that an error of [Notifying.Notify] names.
func OpenChannels(err error) []ChannelRow {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	var report failure.Report
	var open []ChannelRow
	if !ok || app.Details(&report, &open) != nil {
		return nil
	}
	return open
}

// Telling serves the [ChannelQueue] of every channel, with what [Notifying] has.
type Telling struct {
	Notifying *Notifying
}

// TellParams name a review and the row of the channel that is to be told of it.
type TellParams struct {
	StageParams
	ChannelRow
}

// TellChannel tells one channel once.
func (t *Telling) TellChannel(ctx context.Context, p TellParams) error {
	report, _, err := t.Notifying.compose(ctx, p.StageParams)
	if err == nil {
		_, err = t.Notifying.deliver(ctx, report, p.Row)
	}
	if err != nil {
		return fmt.Errorf("tell %s about changelist %d: %w", p.Channel, p.Request.Changelist, err)
	}
	return nil
}
