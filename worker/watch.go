package main

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/store"
)

// watchInterval is how often one of the workers looks after the reviews.
const watchInterval = 10 * time.Second

// watchReviews closes the jobs of reviews whose run has ended without doing so: it was
// terminated, timed out or deleted.
func (r *runtime) watchReviews(ctx context.Context, db *store.DB) {
	r.background(ctx, func(ctx context.Context) {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			mine, err := db.ClaimWatch(ctx, watchInterval-time.Second)
			if mine {
				err = r.closeEnded(ctx, db)
			}
			if err != nil && ctx.Err() == nil {
				r.lg.WarnContext(ctx, "check of unfinished reviews failed", "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// closeEnded reads the jobs before the runs: a run closes its job before it ends, and a
// reset gives the job another run. The log does not have how the run ended: the text of the
// person who terminated it may hold a secret or an address.
func (r *runtime) closeEnded(ctx context.Context, db *store.DB) error {
	unfinished, err := db.ClaimUnfinished(ctx)
	if err != nil {
		return err
	}
	for _, u := range unfinished {
		how, err := r.namespace.EndOf(ctx, u.WorkflowID)
		if err != nil {
			return err
		}
		if how == "" {
			continue
		}
		state, err := db.CloseEnded(ctx, u, how)
		if err != nil {
			return err
		}
		if state != "" {
			r.lg.WarnContext(ctx, "review ended without closing its job", "workflow_id", u.WorkflowID, "state", string(state))
		}
	}
	return nil
}
