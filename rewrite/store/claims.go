// Runs and their claims of jobs. queries/jobs.sql has the rules: which jobs a run claims, takes over
// and recovers.

package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// BeginRun records the begin of a run. It may be called again. It ends the runs of the
// worker that were terminated and so have no end.
func (q *Queue) BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error {
	return q.inTx(ctx, "begin run", func(tx *db.Queries) error {
		if err := tx.FinishLostRuns(ctx, worker, runID); err != nil {
			return err
		}
		return tx.BeginRun(ctx, runID, worker, maxJobs)
	})
}

// A Run is the record of one run.
type Run = db.Run

// FinishRun ends the run and returns its record. The database counts the run's
// transitions (rewrite 10).
func (q *Queue) FinishRun(ctx context.Context, runID string) (Run, error) {
	if err := q.Queries.FinishRun(ctx, runID); err != nil {
		return Run{}, err
	}
	return q.Run(ctx, runID)
}

// Claim claims eligible jobs of other providers than the refusing ones, up to limit per run with
// all its attempts, and returns them, oldest first (rewrite 7.1).
// Two concurrent calls never claim the same job.
func (q *Queue) Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int, refusing []string) ([]rewrite.Job, error) {
	claimed, err := q.ClaimedByRun(ctx, c.RunID)
	if err != nil {
		return nil, err
	}
	rows, err := q.ClaimJobs(ctx, db.ClaimJobsParams{
		Mode: string(mode), MaxJobs: max(0, limit-int(claimed)), Worker: c.Worker, ClaimToken: c.Token, RunID: c.RunID,
		Refusing: append([]string{}, refusing...),
	})
	return oldestFirst(asJobs(rows)), err
}

// TakeOver takes over the claims of earlier attempts of the run and returns their jobs,
// oldest first. Writes of those attempts fail from now on.
func (q *Queue) TakeOver(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error) {
	rows, err := q.TakeOverClaims(ctx, c.Token, c.Worker, c.RunID)
	return oldestFirst(asJobs(rows)), err
}

// oldestFirst sorts the jobs that an update returned, which have no order.
func oldestFirst(jobs []rewrite.Job) []rewrite.Job {
	slices.SortFunc(jobs, func(a, b rewrite.Job) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return jobs
}

// Release queues the jobs of the claim that have neither begun nor joined a batch, after
// wait. It counts no attempt (rewrite 6.1).
func (q *Queue) Release(ctx context.Context, c rewrite.Claim, wait time.Duration) error {
	return q.ReleaseJobs(ctx, db.ReleaseJobsParams{Wait: wait, Error: rewrite.Overflow, RunID: c.RunID, ClaimToken: c.Token})
}

// Settle writes the outcomes of attempts, by the right of a claim or of a batch, if one is named. It
// returns the number of written ones: jobs that both have lost are left unchanged.
func (q *Queue) Settle(ctx context.Context, c rewrite.Claim, batchID string, outcomes []rewrite.Outcome) (int64, error) {
	return q.SettleJobs(ctx, db.SettleJobsParams{
		RunID: c.RunID, ClaimToken: c.Token, BatchID: postgres.OrNull(batchID), Outcomes: encoded(outcomes),
	})
}
