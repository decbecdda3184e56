package wiring

import (
	"log/slog"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
)

// Webhook posts reviews to the URL of the configuration.
func Webhook(lg *slog.Logger, cfg *config.Config) *webhook.Hook {
	return webhook.New(lg, cfg.Webhook.URL, cfg.Webhook.OnAmbiguous == "resend")
}

// Swarm posts reviews to P4 Code Review.
func Swarm(lg *slog.Logger, cfg *config.Config) *swarm.Server {
	return swarm.New(lg, swarm.Config{URL: cfg.Swarm.URL, User: cfg.Swarm.User, Ticket: cfg.Swarm.Ticket, Test: cfg.Swarm.Test})
}
