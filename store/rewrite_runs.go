package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// BeginRun records the begin of a run. It may be called again. It ends the runs of the
// worker that were terminated and so have no end.
func (r Rewrites) BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return r.db.inTx(ctx, "begin rewrite run", func(q *db.Queries) error {
		if err := q.FinishLostRewriteRuns(ctx, db.FinishLostRewriteRunsParams{Worker: worker, RunID: runID}); err != nil {
			return err
		}
		return q.BeginRewriteRun(ctx, db.BeginRewriteRunParams{RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs})
	})
}

// SkipRun records a run that found no pending items (rewrite 5, 10).
func (r Rewrites) SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return postgres.Interpret("record skipped rewrite run", r.db.q.SkipRewriteRun(ctx, db.SkipRewriteRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs, Event: worker.Skip(),
	}))
}

// Runtime returns the time since the run began, by the database's clock.
func (r Rewrites) Runtime(ctx context.Context, runID string) (time.Duration, error) {
	runtime, err := r.db.q.RewriteRuntime(ctx, runID)
	return seconds(runtime), postgres.Interpret("read runtime of rewrite run", err)
}

// FinishRun ends the run and returns its record. The database counts the run's
// transitions (rewrite 10).
func (r Rewrites) FinishRun(ctx context.Context, runID string) (rewrite.Run, error) {
	if err := r.db.q.FinishRewriteRun(ctx, runID); err != nil {
		return rewrite.Run{}, postgres.Interpret("finish rewrite run", err)
	}
	run, err := r.db.q.RewriteRun(ctx, runID)
	return asRewriteRun(run), postgres.Interpret("finish rewrite run", err)
}

// Runs returns the newest runs of one worker, or of all workers if worker is empty.
func (r Rewrites) Runs(ctx context.Context, worker rewrite.Worker, limit int) ([]rewrite.Run, error) {
	rows, err := r.db.q.RewriteRuns(ctx, db.RewriteRunsParams{Worker: string(worker), MaxRuns: limit})
	return postgres.Convert("list rewrite runs", rows, err, asRewriteRun)
}

func asRewriteRun(row db.RewriteRun) rewrite.Run {
	return rewrite.Run{
		ID: row.RunID, Worker: row.Worker, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
		Event: row.Event, MaxJobsPerRun: row.MaxJobsPerRun, Stale: row.StaleCount, PerModel: row.PerModel,
		Counts: rewrite.Counts{
			Claimed: row.ClaimedCount, Submitted: row.SubmittedCount, Succeeded: row.SucceededCount, Failed: row.FailedCount,
			Requeued: row.RequeuedCount, RateLimited: row.RateLimitErrors, Capacity: row.CapacityErrors,
		},
	}
}
