package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// PendingBatches reports whether a batch in the given state has no lease.
func (r Rewrites) PendingBatches(ctx context.Context, state rewrite.SubmissionState) (bool, error) {
	pending, err := r.db.q.PendingRewriteBatches(ctx, state)
	return pending, postgres.Interpret("count pending rewrite batches", err)
}

// EnqueuedTokens returns the tokens of a model's batches at its provider.
func (r Rewrites) EnqueuedTokens(ctx context.Context, provider, model string) (int, error) {
	n, err := r.db.q.EnqueuedRewriteTokens(ctx, db.EnqueuedRewriteTokensParams{Provider: provider, Model: model})
	return int(n), postgres.Interpret("count enqueued tokens", err)
}

// BeginSubmission records the submission key of a batch and binds the jobs to it,
// before the first request to the provider. The caller gets a lease on the batch, by
// the claim's token. If the claim has lost a job, nothing is written and the error has
// class WRITE_CONFLICT.
func (r Rewrites) BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error {
	return r.db.inTx(ctx, "begin submission", func(q *db.Queries) error {
		err := q.InsertRewriteBatch(ctx, db.InsertRewriteBatchParams{
			BatchID: s.ID, RoutingDecision: s.Routing, LanguagePair: s.Languages, Lane: s.Languages.Lane(),
			Requests: len(jobIDs), Tokens: s.Tokens,
			RunID: c.RunID, LeaseToken: c.Token, Lease: lease,
		})
		if err != nil {
			return err
		}
		bound, err := q.BindRewriteJobs(ctx, db.BindRewriteJobsParams{BatchID: s.ID, JobIds: jobIDs, ClaimToken: c.Token})
		if err == nil && int(bound) != len(jobIDs) {
			return lost("bind %d rewrite jobs to a batch", len(jobIDs))
		}
		return err
	})
}

// BeginCreation records the uploaded file and renews the lease before the batch is
// created: from then on the provider may have the batch. The error has class
// WRITE_CONFLICT if the lease has expired.
func (r Rewrites) BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error {
	n, err := r.db.q.RecordRewriteUpload(ctx, db.RecordRewriteUploadParams{
		InputFileID: fileID, Lease: lease, BatchID: batchID, LeaseToken: c.Token,
	})
	if err == nil && n == 0 {
		return lost("create batch %s", batchID)
	}
	return postgres.Interpret("record upload of a batch", err)
}

// RecordCreateError records the error class of a creation that may have created the
// batch.
func (r Rewrites) RecordCreateError(ctx context.Context, c rewrite.Claim, batchID, class string) error {
	return postgres.Interpret("record error of a batch creation", r.db.q.RecordRewriteCreateError(ctx, db.RecordRewriteCreateErrorParams{
		CreateError: class, BatchID: batchID, LeaseToken: c.Token,
	}))
}

// MarkSubmitted records the provider's ID of a batch and marks its jobs submitted. It
// may be called again.
func (r Rewrites) MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error {
	return r.db.inTx(ctx, "mark batch submitted", func(q *db.Queries) error {
		n, err := q.MarkRewriteBatchSubmitted(ctx, db.MarkRewriteBatchSubmittedParams{
			ProviderBatchID: at.ID, ProviderStatus: string(at.Status), BatchID: batchID,
		})
		if err != nil || n == 0 {
			return err
		}
		_, err = q.MarkRewriteJobsSubmitted(ctx, db.MarkRewriteJobsSubmittedParams{RunID: runID, BatchID: batchID})
		return err
	})
}

// Lease leases a batch in the given state that has no lease and that this run has not
// polled; ok is false if there is none.
func (r Rewrites) Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (s rewrite.Submission, ok bool, err error) {
	row, err := r.db.q.LeaseRewriteBatch(ctx, db.LeaseRewriteBatchParams{
		LeaseToken: c.Token, Lease: lease, State: state, RunID: c.RunID,
	})
	if postgres.NoRow(err) {
		return s, false, nil
	}
	s = asSubmission(row.RewriteBatch)
	s.Age, s.FinalAge = seconds(row.Age), seconds(row.FinalAge)
	return s, err == nil, postgres.Interpret("lease rewrite batch", err)
}

// RecordPoll records the provider's status and ends the lease on a batch that the
// provider has not finished, or whose results could not be read yet.
func (r Rewrites) RecordPoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error {
	_, err := r.db.q.RecordRewritePoll(ctx, db.RecordRewritePollParams{
		ProviderStatus: string(status), Final: status.Final(), CancelAsked: cancelAsked, BatchID: batchID, LeaseToken: c.Token,
	})
	return postgres.Interpret("record poll of a batch", err)
}

// BatchJobs returns all jobs of a batch, in any status, in the order of its input
// file.
func (r Rewrites) BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error) {
	rows, err := r.db.q.RewriteJobsOfBatch(ctx, batchID)
	return postgres.Convert("read jobs of a batch", rows, err, asRewriteJob)
}

// EndBatch closes a batch, unless one of its jobs is undecided.
func (r Rewrites) EndBatch(ctx context.Context, batchID string, state rewrite.SubmissionState, status rewrite.BatchStatus) error {
	_, err := r.db.q.EndRewriteBatch(ctx, db.EndRewriteBatchParams{State: state, ProviderStatus: string(status), BatchID: batchID})
	return postgres.Interpret("end rewrite batch", err)
}

// DropSubmission ends a batch that the provider refused; its jobs stay claimed and may
// join another one.
func (r Rewrites) DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error {
	return r.db.inTx(ctx, "drop submission", func(q *db.Queries) error {
		if err := q.UnbindRewriteJobs(ctx, db.UnbindRewriteJobsParams{BatchID: batchID, ClaimToken: c.Token}); err != nil {
			return err
		}
		_, err := q.EndRewriteBatch(ctx, db.EndRewriteBatchParams{State: rewrite.Abandoned, BatchID: batchID})
		return err
	})
}

// Batches returns the newest batches: the open ones, or with ended all.
func (r Rewrites) Batches(ctx context.Context, ended bool, limit int) ([]rewrite.Submission, error) {
	rows, err := r.db.q.RewriteBatches(ctx, db.RewriteBatchesParams{Ended: ended, MaxBatches: limit})
	return postgres.Convert("list rewrite batches", rows, err, asSubmission)
}

// Batch returns one batch.
func (r Rewrites) Batch(ctx context.Context, batchID string) (rewrite.Submission, error) {
	row, err := r.db.q.RewriteBatch(ctx, batchID)
	return asSubmission(row), postgres.Missing("rewrite batch", batchID, err)
}

// AbandonBatch ends an open batch, queues or fails its open jobs and returns their number.
// Each job is counted an attempt: the provider may have executed it. Results that arrive
// later change nothing. The audit log records who and why. The error has class
// WRITE_CONFLICT if the batch has ended.
func (r Rewrites) AbandonBatch(ctx context.Context, batchID, who, reason string) (jobs int, err error) {
	err = r.db.inTx(ctx, "abandon rewrite batch", func(q *db.Queries) error {
		freed, err := q.AbandonRewriteJobs(ctx, db.AbandonRewriteJobsParams{BatchID: batchID, Error: rewrite.BatchAbandoned})
		if err != nil {
			return err
		}
		jobs = int(freed)
		n, err := q.AbandonRewriteBatch(ctx, batchID)
		if err != nil {
			return err
		}
		if n == 0 {
			return failure.Errorf(failure.WriteConflict, "abandon rewrite batch %s: it has ended or does not exist", batchID)
		}
		return audit(ctx, q, "rewrite-batch:"+batchID, who, "rewrite.batch.abandon", map[string]any{"reason": reason, "jobs": jobs})
	})
	return jobs, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func asSubmission(row db.RewriteBatch) rewrite.Submission {
	return rewrite.Submission{
		ID:             row.BatchID,
		State:          row.State,
		Routing:        row.RoutingDecision,
		Languages:      row.LanguagePair,
		Requests:       row.Requests,
		Tokens:         row.Tokens,
		CreatedAt:      row.CreatedAt,
		InputFileID:    postgres.OrZero(row.InputFileID),
		CreateError:    postgres.OrZero(row.CreateError),
		CreateBegunAt:  row.CreateBegunAt,
		ProviderID:     postgres.OrZero(row.ProviderBatchID),
		ProviderStatus: rewrite.BatchStatus(postgres.OrZero(row.ProviderStatus)),
		SubmittedAt:    row.SubmittedAt,
		CancelAskedAt:  row.CancelAskedAt,
		PolledAt:       row.PolledAt,
		FinalAt:        row.FinalAt,
	}
}
