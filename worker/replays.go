package main

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/store"
)

// replayInterval is how often the replays in progress are checked.
const replayInterval = 20 * time.Second

// watchReplays reopens the dead letters of abandoned replays in the background. A
// run that was terminated, canceled or deleted cannot record the end of its
// replay itself.
func (r *runtime) watchReplays(ctx context.Context, db *store.DB) {
	r.background(ctx, func(ctx context.Context) {
		tick := time.NewTicker(replayInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := r.reopenAbandoned(ctx, db); err != nil && ctx.Err() == nil {
				r.lg.WarnContext(ctx, "check of replays failed", "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// reopenAbandoned checks each replay once. It reads the dead letters before the
// runs: a run records the end of its replay before it ends, so a letter that was
// read as replaying and whose run has ended is abandoned.
func (r *runtime) reopenAbandoned(ctx context.Context, db *store.DB) error {
	letters, err := db.DeadLetters(ctx, store.LetterFilter{States: []store.LetterState{store.LetterReplaying}})
	if err != nil {
		return err
	}
	for _, l := range letters {
		end, err := r.namespace.EndOf(ctx, l.WorkflowID)
		if err != nil {
			return err
		}
		if end == "" {
			continue
		}
		reopened, err := db.ReopenDeadLetter(ctx, l, end)
		if err != nil {
			return err
		}
		if reopened {
			r.lg.WarnContext(ctx, "replay abandoned, dead letter open again", "dead_letter", l.ID, "workflow_id", l.WorkflowID, "replay", end)
		}
	}
	return nil
}
