package main

import (
	"context"
	"sync"
	"time"

	"github.com/criticizer/criticizer/store"
)

// replayCheck is how often the replays under way are looked at.
const replayCheck = 20 * time.Second

// watchReplays opens dead letters again whose replay somebody has terminated or
// canceled, or Temporal has forgotten, until ctx ends: nothing else would ever
// say that it is over.
func (p *plant) watchReplays(ctx context.Context, db *store.DB) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(replayCheck)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := p.reopenAbandoned(ctx, db); err != nil && ctx.Err() == nil {
				p.lg.WarnContext(ctx, "replays could not be looked at", "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	p.closers = append(p.closers, func() { stop(); running.Wait() })
}

// reopenAbandoned looks at each replay once. What a run has to say of its
// replay it says before it ends, so that a letter that is read as replaying
// before its run is seen to have ended is abandoned.
func (p *plant) reopenAbandoned(ctx context.Context, db *store.DB) error {
	letters, err := db.DeadLetters(ctx, store.LetterFilter{States: []store.LetterState{store.LetterReplaying}})
	if err != nil {
		return err
	}
	for _, l := range letters {
		how, err := p.namespace.EndOf(ctx, l.WorkflowID)
		if err != nil {
			return err
		}
		if how == "" {
			continue
		}
		reopened, err := db.ReopenDeadLetter(ctx, l, how)
		if err != nil {
			return err
		}
		if reopened {
			p.lg.WarnContext(ctx, "replay abandoned, dead letter open again", "dead_letter", l.ID, "workflow_id", l.WorkflowID, "replay", how)
		}
	}
	return nil
}
