package main

import (
	"context"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store"
)

// requireAppliedAllowList refuses a configured allow-list that nobody has put in
// force, so that who widened it, when and why is on record (security 9.1.5).
func (p *plant) requireAppliedAllowList(ctx context.Context, db *store.DB) error {
	const remedy = `look at the list, then run: criticizer -config FILE allowlist apply -reason "WHY", with the configuration file of this worker`
	configured := store.AllowList{Allowed: p.cfg.P4.AllowedPaths, Embargoed: p.cfg.P4.EmbargoedPaths}
	applied, err := db.AppliedAllowList(ctx)
	if failure.ClassOf(err) == failure.NotFound {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths was never applied: %s", remedy)
	}
	if err != nil {
		return err
	}
	if changes := configured.Changes(applied.AllowList); len(changes) > 0 {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths and p4.embargoed_paths differ from version %d of the allow-list, which was applied (%s): %s",
			applied.ID, strings.Join(changes, ", "), remedy)
	}
	return nil
}
