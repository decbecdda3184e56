package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// A Batch is the record of one batch. Its ID is the submission key, which identifies the batch at
// the provider.
type Batch = db.Batch

// A Submission is a leased batch.
type Submission struct {
	Batch
	Age      time.Duration // since the submission, by the database's clock
	FinalAge time.Duration // since the provider was first seen to have ended the batch
}

// BeginSubmission records the submission key of a batch and binds the jobs to it,
// before the first request to the provider. The caller gets a lease on the batch, by
// the claim's token. If the claim has lost a job, nothing is written and the error has
// class WRITE_CONFLICT.
func (q *Queue) BeginSubmission(ctx context.Context, c rewrite.Claim, b Batch, jobIDs []string, lease time.Duration) error {
	return q.inTx(ctx, "begin submission", func(tx *db.Queries) error {
		return insertBatch(ctx, tx, c, b, jobIDs, lease)
	})
}

// insertBatch inserts a batch and binds claimed jobs to it.
func insertBatch(ctx context.Context, tx *db.Queries, c rewrite.Claim, b Batch, jobIDs []string, lease time.Duration) error {
	err := tx.InsertBatch(ctx, db.InsertBatchParams{
		BatchID: b.BatchID, RoutingDecision: b.RoutingDecision, LanguagePair: b.LanguagePair,
		Requests: len(jobIDs), Tokens: b.Tokens, RunID: c.RunID, LeaseToken: c.Token, Lease: lease,
	})
	if err != nil {
		return err
	}
	bound, err := tx.BindJobs(ctx, b.BatchID, jobIDs, c.Token)
	if err == nil && int(bound) != len(jobIDs) {
		return failure.Errorf(failure.WriteConflict, "bind %d jobs to a batch: the claim was lost", len(jobIDs))
	}
	return err
}

// RestoreBatch makes the row of a batch that the provider has and the database has lost, with those of
// the listed jobs that are queued, and returns their number. Without any it writes nothing.
func (q *Queue) RestoreBatch(ctx context.Context, c rewrite.Claim, provider string, at rewrite.ProviderBatch, jobIDs []string) (restored int, err error) {
	err = q.inTx(ctx, "restore batch", func(tx *db.Queries) error {
		rows, err := tx.ClaimListed(ctx, db.ClaimListedParams{Worker: c.Worker, ClaimToken: c.Token, RunID: c.RunID, JobIds: jobIDs, Provider: provider})
		if restored = len(rows); err != nil || restored == 0 {
			return err
		}
		jobs, ids := asJobs(rows), make([]string, len(rows))
		for i, job := range jobs {
			ids[i] = job.ID
		}
		if err := insertBatch(ctx, tx, c, Batch{BatchID: at.Key, RoutingDecision: *jobs[0].Routing, LanguagePair: jobs[0].Languages}, ids, 0); err != nil {
			return err
		}
		return markSubmitted(ctx, tx, c.RunID, at.Key, at)
	})
	return restored, err
}

// BeginCreation records the uploaded file and renews the lease before the batch is
// created: from then on the provider may have the batch. The error has class
// WRITE_CONFLICT if the lease has expired.
func (q *Queue) BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error {
	n, err := q.RecordUpload(ctx, db.RecordUploadParams{InputFileID: fileID, Lease: lease, BatchID: batchID, LeaseToken: c.Token})
	if err == nil && n == 0 {
		return failure.Errorf(failure.WriteConflict, "create batch %s: the lease was lost", batchID)
	}
	return err
}

// MarkSubmitted records the provider's ID of a batch and marks its jobs submitted. It
// may be called again.
func (q *Queue) MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error {
	return q.inTx(ctx, "mark batch submitted", func(tx *db.Queries) error { return markSubmitted(ctx, tx, runID, batchID, at) })
}

func markSubmitted(ctx context.Context, tx *db.Queries, runID, batchID string, at rewrite.ProviderBatch) error {
	n, err := tx.MarkBatchSubmitted(ctx, at.ID, at.Status, batchID)
	if err != nil || n == 0 {
		return err
	}
	return tx.MarkJobsSubmitted(ctx, runID, batchID)
}

// Lease leases a batch in the given state that has no lease and that this run has not
// polled; ok is false if there is none.
func (q *Queue) Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (s Submission, ok bool, err error) {
	row, err := q.LeaseBatch(ctx, db.LeaseBatchParams{LeaseToken: c.Token, Lease: lease, State: state, RunID: c.RunID})
	if failure.ClassOf(err) == failure.NotFound {
		return s, false, nil
	}
	return Submission{row.Batch, row.Age, row.FinalAge}, err == nil, err
}

// BatchJobs returns all jobs of a batch, in any status, in the order of its input
// file.
func (q *Queue) BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error) {
	rows, err := q.JobsOfBatch(ctx, batchID)
	return asJobs(rows), err
}

// DropSubmission ends a batch that the provider refused; its jobs stay claimed and may
// join another one.
func (q *Queue) DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error {
	return q.inTx(ctx, "drop submission", func(tx *db.Queries) error {
		if err := tx.UnbindJobs(ctx, batchID, c.Token); err != nil {
			return err
		}
		return tx.EndBatch(ctx, rewrite.Abandoned, "", batchID)
	})
}
