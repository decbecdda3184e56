package wiring

import (
	"fmt"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/p4"
)

// Owners are told of changes to what they own.
func Owners(cfg *config.Config) (p4.Owners, error) {
	owners, err := p4.NewOwners(cfg.Mail.Owners)
	if err != nil {
		return nil, fmt.Errorf("mail.owners: %w", err)
	}
	return owners, nil
}

// Recipients decides who is told.
func Recipients(cfg *config.Config) activities.RecipientPolicy {
	return activities.RecipientPolicy{
		CleanTo: activities.CleanTo(cfg.Mail.CleanTo), Max: cfg.Mail.MaxRecipients,
		OptOut: cfg.Mail.OptOut, Bots: cfg.Mail.Bots,
	}
}
