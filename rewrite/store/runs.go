package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// BeginRun records the begin of a run. It may be called again. It ends the runs of the
// worker that were terminated and so have no end.
func (q *Queue) BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return q.inTx(ctx, "begin run", func(tx *db.Queries) error {
		if err := tx.FinishLostRuns(ctx, db.FinishLostRunsParams{Worker: worker, RunID: runID}); err != nil {
			return err
		}
		return tx.BeginRun(ctx, db.BeginRunParams{RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs})
	})
}

// SkipRun records a run that found no pending items (rewrite 5, 10).
func (q *Queue) SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return postgres.Interpret("record skipped run", q.q.SkipRun(ctx, db.SkipRunParams{
		RunID: runID, Worker: worker, MaxJobsPerRun: maxJobs, Event: worker.Skip(),
	}))
}

// Runtime returns the time since the run began, by the database's clock.
func (q *Queue) Runtime(ctx context.Context, runID string) (time.Duration, error) {
	runtime, err := q.q.Runtime(ctx, runID)
	return seconds(runtime), postgres.Interpret("read runtime of run", err)
}

// RecordRefusals records the providers that refused a call before the run claimed jobs.
func (q *Queue) RecordRefusals(ctx context.Context, runID string, refusals []rewrite.Refusal) error {
	if len(refusals) == 0 {
		return nil
	}
	return postgres.Interpret("record refusals", q.q.RecordRefusals(ctx, db.RecordRefusalsParams{RunID: runID, Refusals: encoded(refusals)}))
}

// FinishRun ends the run and returns its record. The database counts the run's
// transitions (rewrite 10).
func (q *Queue) FinishRun(ctx context.Context, runID string) (rewrite.Run, error) {
	if err := q.q.FinishRun(ctx, runID); err != nil {
		return rewrite.Run{}, postgres.Interpret("finish run", err)
	}
	run, err := q.q.Run(ctx, runID)
	return asRun(run), postgres.Interpret("finish run", err)
}

// Runs returns the newest runs of one worker, or of all workers if worker is empty.
func (q *Queue) Runs(ctx context.Context, worker rewrite.Worker, limit int) ([]rewrite.Run, error) {
	rows, err := q.q.Runs(ctx, db.RunsParams{Worker: string(worker), MaxRuns: limit})
	return postgres.Convert("list runs", rows, err, asRun)
}

func asRun(row db.Run) rewrite.Run {
	return rewrite.Run{
		ID: row.RunID, Worker: row.Worker, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
		Event: row.Event, MaxJobsPerRun: row.MaxJobsPerRun, Stale: row.StaleCount, PerModel: row.PerModel, Refusals: row.Refusals,
		Counts: rewrite.Counts{
			Claimed: row.ClaimedCount, Submitted: row.SubmittedCount, Succeeded: row.SucceededCount, Failed: row.FailedCount,
			Requeued: row.RequeuedCount, RateLimited: row.RateLimitErrors, Capacity: row.CapacityErrors,
		},
	}
}
