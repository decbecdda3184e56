package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// A Filter selects jobs.
type Filter struct {
	Statuses  []rewrite.Status // all if empty
	RequestID string           // any if empty
	Limit     int
}

// Find returns the newest jobs that f selects.
func (q *Queue) Find(ctx context.Context, f Filter) ([]rewrite.Job, error) {
	p := db.FindJobsParams{MaxJobs: f.Limit, RewriteRequestID: postgres.OrNull(f.RequestID), Statuses: []string{}}
	for _, s := range f.Statuses {
		p.Statuses = append(p.Statuses, string(s))
	}
	rows, err := q.q.FindJobs(ctx, p)
	return postgres.Convert("find jobs", rows, err, asJob)
}

// A Transition is one change of a job's status, as the database recorded it.
type Transition struct {
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
func (q *Queue) Trail(ctx context.Context, jobID string) ([]Transition, error) {
	rows, err := q.q.Transitions(ctx, jobID)
	return postgres.Convert("read trail of job", rows, err, func(t db.TransitionsRow) Transition {
		return Transition{
			t.At, t.Login, rewrite.Status(postgres.OrZero(t.FromStatus)), rewrite.Status(t.ToStatus), t.AttemptCount,
			postgres.OrZero(t.Error), postgres.OrZero(t.RunID), postgres.OrZero(t.BatchID),
		}
	})
}

// Cancel cancels a job permanently and records who and why in the audit log. The error
// has class WRITE_CONFLICT if the job has ended.
func (q *Queue) Cancel(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return q.repair(ctx, "rewrite.cancel", jobID, who, reason, (*db.Queries).CancelJob)
}

// Requeue makes a job eligible now: a job that waits for its time, or a claimed job
// whose worker is lost, which counts an attempt. The error has class WRITE_CONFLICT
// for any other job.
func (q *Queue) Requeue(ctx context.Context, jobID, who, reason string) (rewrite.Job, error) {
	return q.repair(ctx, "rewrite.requeue", jobID, who, reason, (*db.Queries).RequeueJob)
}

func (q *Queue) repair(ctx context.Context, action, jobID, who, reason string,
	change func(*db.Queries, context.Context, string) (db.Job, error),
) (rewrite.Job, error) {
	var job db.Job
	err := q.inTx(ctx, action+" "+jobID, func(tx *db.Queries) (err error) {
		job, err = change(tx, ctx, jobID)
		if postgres.NoRow(err) {
			return failure.Errorf(failure.WriteConflict, "%s %s: its status does not allow it", action, jobID)
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, "job:"+jobID, who, action, map[string]any{"reason": reason})
	})
	return asJob(job), err
}

// audit appends an action on an object to the log. claimed is the name of a person who
// shares the login with others.
func audit(ctx context.Context, tx *db.Queries, object, claimed, action string, detail map[string]any) error {
	return tx.AppendAudit(ctx, db.AppendAuditParams{Claimed: claimed, Action: action, Object: object, Detail: encoded(detail)})
}

// Stats counts the jobs of one status and execution mode.
type Stats struct {
	Status   rewrite.Status        `json:"status"`
	Mode     rewrite.ExecutionMode `json:"execution_mode,omitempty"` // empty: not routed
	Jobs     int                   `json:"jobs"`
	Deferred int                   `json:"deferred"` // jobs whose not_before_at is in the future
	Oldest   time.Time             `json:"oldest"`
}

// Stats counts all jobs.
func (q *Queue) Stats(ctx context.Context) ([]Stats, error) {
	rows, err := q.q.Stats(ctx)
	return postgres.Convert("count jobs", rows, err, func(s db.StatsRow) Stats {
		return Stats{s.Status, rewrite.ExecutionMode(s.ExecutionMode), s.Jobs, s.Deferred, s.Oldest}
	})
}
