package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// claim ends stale claims, routes jobs that need it, and returns the jobs of an earlier
// attempt of the run or else claims new ones, up to the run's limit. A job that cannot be
// read fails alone, by the name of the field.
func (a *Activities) claim(ctx context.Context, runID string, mode rewrite.ExecutionMode) (rewrite.Claim, []rewrite.Job, error) {
	c := rewrite.NewClaim(runID, a.parts.Name)
	held, err := a.parts.Queue.Adopt(ctx, c)
	if err != nil {
		return c, nil, err
	}
	recovered, err := a.parts.Queue.RecoverStale(ctx, runID, a.cfg.Run.ClaimTimeout())
	if err != nil {
		return c, nil, err
	}
	if recovered > 0 {
		a.lg.WarnContext(ctx, "stale claims ended", "run_id", runID, "jobs", recovered)
	}
	if err := a.route(ctx); err != nil {
		return c, nil, err
	}
	if len(held) == 0 {
		if held, err = a.parts.Queue.Claim(ctx, c, mode, a.cfg.Run.MaxJobsPerRun); err != nil {
			return c, nil, err
		}
	}
	var faulty []rewrite.Verdict
	held = slices.DeleteFunc(held, func(job rewrite.Job) bool {
		fault := job.Fault()
		if fault != "" {
			a.lg.WarnContext(ctx, "rewrite job cannot be read", "job_id", job.ID, "run_id", runID, "field", fault)
			faulty = append(faulty, rewrite.Verdict{JobID: job.ID, Status: rewrite.Failed, Attempts: job.AttemptCount, Error: "unreadable_" + fault})
		}
		return fault != ""
	})
	return c, held, a.settle(ctx, c.Holder(), faulty...)
}

// extend keeps the claim from becoming stale until stop is called: a claim is stale only if
// its worker is dead or cannot reach the database.
func (a *Activities) extend(ctx context.Context, claim rewrite.Claim) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		beat := time.NewTicker(a.cfg.Run.ClaimTimeout() / 4)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			if err := a.parts.Queue.Extend(ctx, claim); err != nil && ctx.Err() == nil {
				a.lg.WarnContext(ctx, "extension of a claim failed", "run_id", claim.RunID, "error_class", failure.ClassOf(err))
			}
		}
	}()
	return cancel
}

// If err ends the run, release queues the jobs that were not begun and counts no attempt:
// otherwise their claims would become stale, which counts one. It returns err.
func (a *Activities) release(ctx context.Context, claim rewrite.Claim, err error) error {
	if failure.ClassOf(err).Retryable() {
		return err
	}
	return errors.Join(err, a.releaseRest(ctx, claim))
}

// releaseRest queues the jobs of the claim that were not begun, even if the run was
// canceled.
func (a *Activities) releaseRest(ctx context.Context, claim rewrite.Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return a.parts.Queue.Release(ctx, claim, a.cfg.Run.OverflowBackoff())
}

// route decides about jobs without a routing decision.
func (a *Activities) route(ctx context.Context) error {
	unrouted, err := a.parts.Queue.Unrouted(ctx, a.cfg.Run.MaxJobsPerRun)
	if err != nil || len(unrouted) == 0 {
		return err
	}
	decisions := map[string]rewrite.RoutingDecision{}
	for _, job := range unrouted {
		decisions[job.ID] = a.parts.Router.Route(job.Strength)
	}
	if err := a.parts.Queue.Route(ctx, decisions); err != nil {
		return fmt.Errorf("route %d jobs: %w", len(unrouted), err)
	}
	return nil
}
