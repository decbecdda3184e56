package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// BeginRun records the begin of a run. It may be called again.
func (r Rewrites) BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return interpret("begin rewrite run", r.db.q.BeginRewriteRun(ctx, db.BeginRewriteRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs,
	}))
}

// SkipRun records a run that found no pending items (rewrite 5, 10).
func (r Rewrites) SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return interpret("record skipped rewrite run", r.db.q.SkipRewriteRun(ctx, db.SkipRewriteRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs, Event: worker.Skip(),
	}))
}

// Runtime returns the time since the run began, by the database's clock.
func (r Rewrites) Runtime(ctx context.Context, runID string) (time.Duration, error) {
	seconds, err := r.db.q.RewriteRuntime(ctx, runID)
	return time.Duration(seconds * float64(time.Second)), interpret("read runtime of rewrite run", err)
}

// FinishRun counts the transitions of the run, records the counts with the run's end
// and returns the record (rewrite 10).
func (r Rewrites) FinishRun(ctx context.Context, runID string) (rewrite.Run, error) {
	var run db.RewriteRun
	err := r.db.inTx(ctx, "finish rewrite run", func(q *db.Queries) error {
		rows, err := q.RewriteRunCounts(ctx, runID)
		if err != nil {
			return err
		}
		sum := db.FinishRewriteRunParams{RunID: runID, PerModel: []rewrite.ModelCounts{}}
		for _, row := range rows {
			sum.PerModel = append(sum.PerModel, rewrite.ModelCounts{Provider: row.Provider, Model: row.Model, Counts: rewrite.Counts{
				Claimed: row.Claimed, Submitted: row.Submitted, Succeeded: row.Succeeded, Failed: row.Failed,
				Requeued: row.Requeued, RateLimited: row.RateLimited, Capacity: row.Capacity,
			}})
			sum.Claimed += row.Claimed
			sum.Submitted += row.Submitted
			sum.Succeeded += row.Succeeded
			sum.Failed += row.Failed
			sum.Requeued += row.Requeued
			sum.Stale += row.Stale
			sum.RateLimited += row.RateLimited
			sum.Capacity += row.Capacity
		}
		run, err = q.FinishRewriteRun(ctx, sum)
		return err
	})
	return asRewriteRun(run), err
}

// Runs returns the newest runs of one worker, or of all workers if worker is empty.
func (r Rewrites) Runs(ctx context.Context, worker rewrite.Worker, limit int) ([]rewrite.Run, error) {
	rows, err := r.db.q.RewriteRuns(ctx, db.RewriteRunsParams{Worker: string(worker), MaxRuns: limit})
	return convert("list rewrite runs", rows, err, asRewriteRun)
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
