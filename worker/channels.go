package main

import (
	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
)

// addChannels adds the configured channels to n. It returns the queues of all
// channels: deliveries to a channel that was removed from the configuration may
// be pending, and an activity has to fail them.
func addChannels(r *runtime, n *activities.Notifying, keys *evidence.Keys) []queue {
	posting := &activities.Posting{Notifying: n}
	webhookQueue := queue{name: activities.ChannelQueue(review.ChannelWebhook), activities: posting, anonymousPing: true}
	swarmQueue := queue{name: activities.ChannelQueue(review.ChannelSwarm), activities: posting}
	if r.cfg.Webhook.URL.IsSet() {
		webhook := wiring.Webhook(r.lg, r.cfg, keys)
		n.Channels = append(n.Channels, activities.Channel{
			Name: review.ChannelWebhook, Post: tracedPost{review.ChannelWebhook, webhook}, Clean: r.cfg.Webhook.Clean,
		})
		webhookQueue.ping = webhook.Ping
	}
	if r.cfg.Swarm.URL != "" {
		swarm := wiring.Swarm(r.lg, r.cfg, keys)
		n.Channels = append(n.Channels, activities.Channel{Name: review.ChannelSwarm, Post: tracedPost{review.ChannelSwarm, swarm}, Clean: true})
		swarmQueue.ping = swarm.Ping
	}
	return []queue{webhookQueue, swarmQueue}
}
