package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/rewrite"
)

// jobs are the jobs in Postgres.
type jobs interface {
	// Pending reports whether a run of this mode could claim, route or recover
	// anything.
	Pending(ctx context.Context, mode rewrite.ExecutionMode, claimTimeout time.Duration) (bool, error)
	// RecoverStale ends claims older than timeout (queue 7.2).
	RecoverStale(ctx context.Context, runID string, timeout time.Duration) (int, error)
	// Unrouted returns jobs that have no routing decision.
	Unrouted(ctx context.Context, limit int) ([]rewrite.Job, error)
	// Route sets decisions by job id.
	Route(ctx context.Context, decisions map[string]rewrite.RoutingDecision) error
	// Claim claims eligible jobs, oldest first (queue 7.1).
	Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int) ([]rewrite.Job, error)
	// Adopt takes over the claims of the run's earlier attempts.
	Adopt(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error)
	// Begin records that the provider is about to be asked to execute the job;
	// false if the claim was lost.
	Begin(ctx context.Context, c rewrite.Claim, jobID string) (bool, error)
	// Release queues what was neither begun nor bound to a batch.
	Release(ctx context.Context, c rewrite.Claim, wait time.Duration, reason string) (int, error)
	// Input returns where a job's texts are.
	Input(ctx context.Context, jobID string) (text, preferences string, err error)
	// Complete and Fail write what became of jobs.
	Complete(ctx context.Context, by rewrite.Holder, results map[string]string) (int, error)
	Fail(ctx context.Context, by rewrite.Holder, verdicts []rewrite.Verdict) (int, error)
}

// claim ends stale claims, routes jobs that need it, and claims up to the run's
// limit, what an earlier attempt of the run holds included.
func (w *Working) claim(ctx context.Context, runID string, mode rewrite.ExecutionMode) (rewrite.Claim, []rewrite.Job, error) {
	c := rewrite.NewClaim(runID, w.parts.Name)
	held, err := w.parts.Queue.Adopt(ctx, c)
	if err != nil {
		return c, nil, err
	}
	recovered, err := w.parts.Queue.RecoverStale(ctx, runID, w.cfg.Run.ClaimTimeout())
	if err != nil {
		return c, nil, err
	}
	if recovered > 0 {
		w.lg.WarnContext(ctx, "stale claims ended", "run_id", runID, "jobs", recovered)
	}
	if err := w.route(ctx); err != nil {
		return c, nil, err
	}
	if len(held) > 0 { // this attempt goes on with what the run has claimed, and claims no more
		return c, held, nil
	}
	claimed, err := w.parts.Queue.Claim(ctx, c, mode, w.cfg.Run.MaxJobsPerRun)
	return c, claimed, err
}

// route decides about jobs that came without a decision.
func (w *Working) route(ctx context.Context) error {
	unrouted, err := w.parts.Queue.Unrouted(ctx, w.cfg.Run.MaxJobsPerRun)
	if err != nil || len(unrouted) == 0 {
		return err
	}
	decisions := map[string]rewrite.RoutingDecision{}
	for _, job := range unrouted {
		decisions[job.ID] = w.parts.Router.Route(rewrite.RouteInput{
			JobID: job.ID, RequestID: job.RequestID, RecipientUserID: job.RecipientUserID,
			Surface: job.Surface, Strength: job.Strength, Languages: job.Languages,
		})
	}
	if err := w.parts.Queue.Route(ctx, decisions); err != nil {
		return fmt.Errorf("route %d jobs: %w", len(unrouted), err)
	}
	return nil
}
