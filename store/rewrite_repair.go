package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// A RewriteFilter selects rewrite jobs.
type RewriteFilter struct {
	Statuses  []rewrite.Status // all if empty
	RequestID string           // any if empty
	Limit     int
}

// Find returns the newest jobs that f selects.
func (r Rewrites) Find(ctx context.Context, f RewriteFilter) ([]rewrite.Job, error) {
	p := db.FindRewriteJobsParams{MaxJobs: f.Limit, RewriteRequestID: postgres.OrNull(f.RequestID), Statuses: []string{}}
	for _, s := range f.Statuses {
		p.Statuses = append(p.Statuses, string(s))
	}
	rows, err := r.db.q.FindRewriteJobs(ctx, p)
	return postgres.Convert("find rewrite jobs", rows, err, asRewriteJob)
}

// A RewriteTransition is one change of a job's status, as the database recorded it.
type RewriteTransition struct {
	At       time.Time      `json:"at"`
	Login    string         `json:"login"`
	From     rewrite.Status `json:"from_status,omitempty"` // empty: enqueued
	To       rewrite.Status `json:"to_status"`
	Attempts int            `json:"attempt_count"`
	Error    string         `json:"error,omitempty"`
	RunID    string         `json:"run_id,omitempty"` // empty: an operator or a backend made the change
	BatchID  string         `json:"batch_id,omitempty"`
}

// Trail returns every change of a job's status, oldest first.
func (r Rewrites) Trail(ctx context.Context, jobID string) ([]RewriteTransition, error) {
	rows, err := r.db.q.RewriteTransitions(ctx, jobID)
	return postgres.Convert("read trail of rewrite job", rows, err, func(t db.RewriteTransitionsRow) RewriteTransition {
		return RewriteTransition{
			t.At, t.Login, rewrite.Status(postgres.OrZero(t.FromStatus)), rewrite.Status(t.ToStatus), t.AttemptCount,
			postgres.OrZero(t.Error), postgres.OrZero(t.RunID), postgres.OrZero(t.BatchID),
		}
	})
}

// Cancel cancels a job permanently and records who and why in the audit log. The error
// has class WRITE_CONFLICT if the job has ended.
func (r Rewrites) Cancel(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return r.repair(ctx, "rewrite.cancel", jobID, who, reason, (*db.Queries).CancelRewriteJob)
}

// Requeue makes a job eligible now: a job that waits for its time, or a claimed job
// whose worker is lost, which counts an attempt. The error has class WRITE_CONFLICT
// for any other job.
func (r Rewrites) Requeue(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return r.repair(ctx, "rewrite.requeue", jobID, who, reason, (*db.Queries).RequeueRewriteJob)
}

func (r Rewrites) repair(ctx context.Context, action, jobID, who, reason string,
	change func(*db.Queries, context.Context, string) (db.RewriteJob, error),
) (rewrite.Job, error) {
	var job db.RewriteJob
	changed, err := r.db.changeAudited(ctx, "rewrite:"+jobID, who, action, map[string]any{"reason": reason}, func(q *db.Queries) (_ int64, err error) {
		job, err = change(q, ctx, jobID)
		return oneOrNone(err)
	})
	if err == nil && !changed {
		err = failure.Errorf(failure.WriteConflict, "%s %s: its status does not allow it", action, jobID)
	}
	return asRewriteJob(job), err
}

// RewriteStats counts the jobs of one status and execution mode.
type RewriteStats struct {
	Status   rewrite.Status        `json:"status"`
	Mode     rewrite.ExecutionMode `json:"execution_mode,omitempty"` // empty: not routed
	Jobs     int                   `json:"jobs"`
	Deferred int                   `json:"deferred"` // jobs whose not_before_at is in the future
	Oldest   time.Time             `json:"oldest"`
}

// Stats counts all jobs.
func (r Rewrites) Stats(ctx context.Context) ([]RewriteStats, error) {
	rows, err := r.db.q.RewriteStats(ctx)
	return postgres.Convert("count rewrite jobs", rows, err, func(s db.RewriteStatsRow) RewriteStats {
		return RewriteStats{s.Status, rewrite.ExecutionMode(s.ExecutionMode), s.Jobs, s.Deferred, s.Oldest}
	})
}
