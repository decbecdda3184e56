package wiring

import (
	"fmt"
	"log/slog"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
)

// Webhook returns the client of the configured webhook.
func Webhook(lg *slog.Logger, cfg *config.Config, keys *evidence.Keys) *webhook.Hook {
	return webhook.New(lg, cfg.Webhook.URL, webhook.Doubt(cfg.Webhook.OnAmbiguous), keys)
}

// Swarm returns the client of P4 Code Review.
func Swarm(lg *slog.Logger, cfg *config.Config, keys *evidence.Keys) *swarm.Server {
	return swarm.New(lg, swarm.Config{
		URL: cfg.Swarm.URL, User: cfg.Swarm.User, Ticket: cfg.Swarm.Ticket, Test: cfg.Swarm.Test,
		FailSeverity: review.Severity(cfg.Swarm.FailSeverity), Keys: keys,
	})
}

// Links returns the templates of links to the code.
func Links(cfg *config.Config) review.Links {
	change, file := cfg.Links.Templates()
	return review.Links{Change: change, File: file}
}

// EvidenceKeys returns the keys that identify messages.
func EvidenceKeys(cfg *config.Config) (*evidence.Keys, error) {
	return evidence.New(cfg.Evidence.Key, cfg.Evidence.KeyLife)
}

// Owners returns the recipients of changes to paths.
func Owners(cfg *config.Config) (p4.Owners, error) {
	owners, err := p4.NewOwners(cfg.Mail.Owners)
	if err != nil {
		return nil, fmt.Errorf("mail.owners: %w", err)
	}
	return owners, nil
}

// Recipients returns the policy that decides who is notified.
func Recipients(cfg *config.Config) activities.RecipientPolicy {
	return activities.RecipientPolicy{
		CleanTo: activities.CleanTo(cfg.Mail.CleanTo), Max: cfg.Mail.MaxRecipients,
		OptOut: cfg.Mail.OptOut, Bots: cfg.Mail.Bots, AllowedDomains: cfg.Mail.AllowedDomains,
	}
}
