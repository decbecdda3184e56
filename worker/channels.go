package main

import (
	"context"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/review"
)

// A line is one task queue of activities that can be braked.
type line struct {
	queue      string
	activities any
	ping       func(context.Context) error
	// blind lines ping without credentials, so that a breaker for refused ones would
	// be released at once.
	blind bool
}

// addChannels adds the places besides the mailboxes that the configuration names,
// and returns the queue of every channel: one that was taken out of the
// configuration may still have rows, and somebody has to say so.
func addChannels(p *plant, n *activities.Notifying) ([]line, error) {
	telling := &activities.Telling{Notifying: n}
	webhook := line{queue: activities.ChannelQueue(review.ChannelWebhook), activities: telling, blind: true}
	swarm := line{queue: activities.ChannelQueue(review.ChannelSwarm), activities: telling}
	if p.cfg.Webhook.URL.IsSet() {
		hook, err := wiring.Webhook(p.lg, p.cfg)
		if err != nil {
			return nil, err
		}
		n.Channels = append(n.Channels, activities.Channel{
			Name: review.ChannelWebhook, Post: tracedPost{review.ChannelWebhook, hook}, Clean: p.cfg.Webhook.Clean,
		})
		webhook.ping = hook.Ping
	}
	if p.cfg.Swarm.URL != "" {
		server, err := wiring.Swarm(p.lg, p.cfg)
		if err != nil {
			return nil, err
		}
		n.Channels = append(n.Channels, activities.Channel{Name: review.ChannelSwarm, Post: tracedPost{review.ChannelSwarm, server}, Clean: true})
		swarm.ping = server.Ping
	}
	return []line{webhook, swarm}, nil
}
