package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// BeginRun records that a run has begun. It may be called again.
func (r Rewrites) BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return interpret("begin rewrite run", r.db.q.BeginRewriteRun(ctx, db.BeginRewriteRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: int32(maxJobs),
	}))
}

// SkipRun records a run that found nothing to do (queue 5, 10).
func (r Rewrites) SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return interpret("record skipped rewrite run", r.db.q.SkipRewriteRun(ctx, db.SkipRewriteRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: int32(maxJobs), Event: worker.Skip(),
	}))
}

// Runtime is for how long the run has been going on, by the database's clock.
func (r Rewrites) Runtime(ctx context.Context, runID string) (time.Duration, error) {
	seconds, err := r.db.q.RewriteRuntime(ctx, runID)
	return time.Duration(seconds * float64(time.Second)), interpret("read runtime of rewrite run", err)
}

// FinishRun counts what the run did, records that with its end, and returns the
// record (queue 10).
func (r Rewrites) FinishRun(ctx context.Context, runID string) (rewrite.Run, error) {
	var run rewrite.Run
	err := r.db.inTx(ctx, "finish rewrite run", func(q *db.Queries) error {
		rows, err := q.RewriteRunCounts(ctx, runID)
		if err != nil {
			return err
		}
		total, models := sumCounts(rows)
		perModel, err := json.Marshal(models)
		if err != nil {
			return failure.New(failure.InvariantViolated, err)
		}
		row, err := q.FinishRewriteRun(ctx, db.FinishRewriteRunParams{
			RunID: runID, PerModel: perModel, Claimed: total.Claimed, Submitted: total.Submitted, Succeeded: total.Succeeded,
			Failed: total.Failed, Requeued: total.Requeued, Stale: total.Stale, RateLimited: total.RateLimited, Capacity: total.Capacity,
		})
		if err != nil {
			return err
		}
		run, err = asRewriteRun(row)
		return err
	})
	return run, err
}

func sumCounts(rows []db.RewriteRunCountsRow) (total db.RewriteRunCountsRow, models []rewrite.ModelCounts) {
	models = []rewrite.ModelCounts{}
	for _, row := range rows {
		models = append(models, rewrite.ModelCounts{Provider: row.Provider, Model: row.Model, Counts: rewrite.Counts{
			Claimed: int(row.Claimed), Submitted: int(row.Submitted), Succeeded: int(row.Succeeded), Failed: int(row.Failed),
			Requeued: int(row.Requeued), RateLimited: int(row.RateLimited), Capacity: int(row.Capacity),
		}})
		total.Claimed += row.Claimed
		total.Submitted += row.Submitted
		total.Succeeded += row.Succeeded
		total.Failed += row.Failed
		total.Requeued += row.Requeued
		total.Stale += row.Stale
		total.RateLimited += row.RateLimited
		total.Capacity += row.Capacity
	}
	return total, models
}

// Runs returns the newest runs, of one worker or, if that is empty, of all.
func (r Rewrites) Runs(ctx context.Context, worker rewrite.Worker, limit int) ([]rewrite.Run, error) {
	rows, err := r.db.q.RewriteRuns(ctx, db.RewriteRunsParams{Worker: string(worker), MaxRuns: int32(limit)})
	if err != nil {
		return nil, interpret("list rewrite runs", err)
	}
	runs := make([]rewrite.Run, len(rows))
	for i, row := range rows {
		if runs[i], err = asRewriteRun(row); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

func asRewriteRun(row db.RewriteRun) (rewrite.Run, error) {
	run := rewrite.Run{
		ID: row.RunID, Worker: row.Worker, StartedAt: row.StartedAt.UTC(), FinishedAt: inUTC(row.FinishedAt),
		Event: row.Event, MaxJobsPerRun: int(row.MaxJobsPerRun), Stale: int(row.StaleCount),
		Counts: rewrite.Counts{
			Claimed: int(row.ClaimedCount), Submitted: int(row.SubmittedCount), Succeeded: int(row.SucceededCount),
			Failed: int(row.FailedCount), Requeued: int(row.RequeuedCount),
			RateLimited: int(row.RateLimitErrors), Capacity: int(row.CapacityErrors),
		},
	}
	if err := json.Unmarshal(row.PerModel, &run.PerModel); err != nil {
		return run, failure.Errorf(failure.InvariantViolated, "read rewrite run %s: its counts are malformed", row.RunID)
	}
	return run, nil
}
