package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// A RewriteFilter says which rewrite jobs are wanted.
type RewriteFilter struct {
	Statuses  []rewrite.Status // all if there are none
	RequestID string           // any if empty
	Limit     int
}

// Find returns the newest jobs that match.
func (r Rewrites) Find(ctx context.Context, f RewriteFilter) ([]rewrite.Job, error) {
	p := db.FindRewriteJobsParams{MaxJobs: int32(f.Limit), RewriteRequestID: orNull(f.RequestID), Statuses: []string{}}
	for _, s := range f.Statuses {
		p.Statuses = append(p.Statuses, string(s))
	}
	rows, err := r.db.q.FindRewriteJobs(ctx, p)
	if err != nil {
		return nil, interpret("find rewrite jobs", err)
	}
	return asRewriteJobs(rows)
}

// A RewriteTransition is one change of a job's status, as the database has
// recorded it.
type RewriteTransition struct {
	At       time.Time      `json:"at"`
	Login    string         `json:"login"`
	From     rewrite.Status `json:"from_status,omitempty"` // empty: enqueued
	To       rewrite.Status `json:"to_status"`
	Attempts int            `json:"attempt_count"`
	Error    string         `json:"error,omitempty"`
	RunID    string         `json:"run_id,omitempty"` // empty: not by a run
	BatchID  string         `json:"batch_id,omitempty"`
}

// Trail returns every change of a job's status, oldest first.
func (r Rewrites) Trail(ctx context.Context, jobID string) ([]RewriteTransition, error) {
	rows, err := r.db.q.RewriteTransitions(ctx, jobID)
	trail := make([]RewriteTransition, len(rows))
	for i, row := range rows {
		trail[i] = RewriteTransition{
			row.At.UTC(), row.Login, rewrite.Status(text(row.FromStatus)), rewrite.Status(row.ToStatus), int(row.AttemptCount),
			text(row.Error), text(row.RunID), text(row.BatchID),
		}
	}
	return trail, interpret("read trail of rewrite job", err)
}

// Cancel ends a job for good; who and why are in the audit log when it returns.
// The error is of class WRITE_CONFLICT if the job has ended already.
func (r Rewrites) Cancel(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return r.repair(ctx, "rewrite.cancel", jobID, who, reason, (*db.Queries).CancelRewriteJob)
}

// Requeue lets a job be claimed at once: one that waits for its time, or one
// that is claimed and whose worker is known to be lost, which counts as an
// attempt. The error is of class WRITE_CONFLICT for any other job.
func (r Rewrites) Requeue(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return r.repair(ctx, "rewrite.requeue", jobID, who, reason, (*db.Queries).RequeueRewriteJob)
}

func (r Rewrites) repair(ctx context.Context, action, jobID, who, reason string,
	change func(*db.Queries, context.Context, string) (db.RewriteJob, error),
) (rewrite.Job, error) {
	var job rewrite.Job
	err := r.db.inTx(ctx, action, func(q *db.Queries) error {
		row, err := change(q, ctx, jobID)
		if errors.Is(err, pgx.ErrNoRows) {
			return failure.Errorf(failure.WriteConflict, "%s %s: its status does not allow it", action, jobID)
		}
		if err != nil {
			return err
		}
		if job, err = asRewriteJob(row); err != nil {
			return err
		}
		return audit(ctx, q, "rewrite:"+jobID, who, action, map[string]any{"reason": reason})
	})
	return job, err
}

// RewriteStats counts the jobs of one status and execution mode.
type RewriteStats struct {
	Status   rewrite.Status        `json:"status"`
	Mode     rewrite.ExecutionMode `json:"execution_mode,omitempty"` // empty: not routed yet
	Jobs     int                   `json:"jobs"`
	Deferred int                   `json:"deferred"` // whose not_before_at is to come
	Oldest   time.Time             `json:"oldest"`
}

// Stats counts all jobs.
func (r Rewrites) Stats(ctx context.Context) ([]RewriteStats, error) {
	rows, err := r.db.q.RewriteStats(ctx)
	stats := make([]RewriteStats, len(rows))
	for i, row := range rows {
		stats[i] = RewriteStats{row.Status, rewrite.ExecutionMode(row.ExecutionMode), int(row.Jobs), int(row.Deferred), row.Oldest.UTC()}
	}
	return stats, interpret("count rewrite jobs", err)
}
