package store

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// Find returns the newest jobs of a status and a request; empty: of all.
func (q *Queue) Find(ctx context.Context, status rewrite.Status, requestID string, limit int) ([]rewrite.Job, error) {
	rows, err := q.FindJobs(ctx, string(status), postgres.OrNull(requestID), limit)
	return asJobs(rows), err
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
	change func(*db.Queries, context.Context, string) ([]byte, error),
) (rewrite.Job, error) {
	var job []byte
	err := q.inTx(ctx, action+" "+jobID, func(tx *db.Queries) (err error) {
		job, err = change(tx, ctx, jobID)
		if failure.ClassOf(err) == failure.NotFound {
			return failure.Errorf(failure.WriteConflict, "%s %s: it does not exist, or its status does not allow it", action, jobID)
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

// AbandonBatch ends an open batch, queues or fails its open jobs and returns their number.
// Each job is counted an attempt: the provider may have executed it. Results that arrive
// later change nothing. The audit log records who and why. The error has class
// WRITE_CONFLICT if the batch has ended.
func (q *Queue) AbandonBatch(ctx context.Context, batchID, who, reason string) (jobs int64, err error) {
	err = q.inTx(ctx, "abandon batch", func(tx *db.Queries) (err error) {
		if jobs, err = tx.AbandonJobs(ctx, rewrite.BatchAbandoned, batchID); err != nil {
			return err
		}
		n, err := tx.AbandonBatch(ctx, batchID)
		if err == nil && n == 0 {
			err = failure.Errorf(failure.WriteConflict, "abandon batch %s: it has ended or does not exist", batchID)
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, "batch:"+batchID, who, "rewrite.batch.abandon", map[string]any{"reason": reason, "jobs": jobs})
	})
	return jobs, err
}
