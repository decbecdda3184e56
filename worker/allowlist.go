package main

import (
	"context"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store"
)

// requireAppliedAllowList fails if the configured allow list is not the applied
// one. Applying a list records who changed it, when and why (security 9.1.5).
func (r *runtime) requireAppliedAllowList(ctx context.Context, db *store.DB) error {
	const hint = `check the list, then run: criticizer --config FILE allowlist apply --reason "WHY", with the configuration file of this worker`
	configured := store.AllowList{Allowed: r.cfg.P4.AllowedPaths, Embargoed: r.cfg.P4.EmbargoedPaths}
	applied, err := db.AppliedAllowList(ctx)
	if failure.ClassOf(err) == failure.NotFound {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths was never applied: %s", hint)
	}
	if err != nil {
		return err
	}
	if changes := configured.Changes(applied.AllowList); len(changes) > 0 {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths and p4.embargoed_paths differ from the applied version %d of the allow list (%s): %s",
			applied.ID, strings.Join(changes, ", "), hint)
	}
	return nil
}
