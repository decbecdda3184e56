package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// PendingBatches reports whether there is a batch in the given state that nobody
// works on.
func (r Rewrites) PendingBatches(ctx context.Context, state rewrite.SubmissionState) (bool, error) {
	pending, err := r.db.q.PendingRewriteBatches(ctx, string(state))
	return pending, interpret("look for rewrite batches", err)
}

// EnqueuedTokens is how many tokens of a model's batches are at its provider.
func (r Rewrites) EnqueuedTokens(ctx context.Context, provider, model string) (int, error) {
	n, err := r.db.q.EnqueuedRewriteTokens(ctx, db.EnqueuedRewriteTokensParams{Provider: provider, Model: model})
	return int(n), interpret("count enqueued tokens", err)
}

// BeginSubmission writes the submission key of a batch and binds the jobs to it,
// before the provider is told of either. The caller holds a lease on the batch,
// by the claim's token. The error is of class WRITE_CONFLICT if a job is not the
// claim's any more; then nothing is written.
func (r Rewrites) BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error {
	routing, err := json.Marshal(s.Routing)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	languages, err := json.Marshal(s.Languages)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	return r.db.inTx(ctx, "begin submission", func(q *db.Queries) error {
		err := q.InsertRewriteBatch(ctx, db.InsertRewriteBatchParams{
			BatchID: s.ID, RoutingDecision: routing, LanguagePair: languages, Lane: string(s.Languages.Lane()),
			Requests: int32(len(jobIDs)), Tokens: int32(s.Tokens),
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

// BeginCreation records the uploaded file and that the batch is about to be
// created: from then on the provider may have it. It renews the lease. The error
// is of class WRITE_CONFLICT if the lease is over.
func (r Rewrites) BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error {
	n, err := r.db.q.NoteRewriteUpload(ctx, db.NoteRewriteUploadParams{
		InputFileID: fileID, Lease: lease, BatchID: batchID, LeaseToken: c.Token,
	})
	if err == nil && n == 0 {
		return lost("create batch %s", batchID)
	}
	return interpret("record upload of a batch", err)
}

// NoteDoubt records how a creation ended of which is not known whether it made a
// batch.
func (r Rewrites) NoteDoubt(ctx context.Context, c rewrite.Claim, batchID, class string) error {
	return interpret("record doubt about a batch", r.db.q.NoteRewriteDoubt(ctx, db.NoteRewriteDoubtParams{
		CreateError: class, BatchID: batchID, LeaseToken: c.Token,
	}))
}

// MarkSubmitted records the provider's id of a batch, and its jobs as submitted.
// It may be called again.
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

// AbandonSubmission gives up a batch that the provider certainly does not have,
// with what becomes of its jobs.
func (r Rewrites) AbandonSubmission(ctx context.Context, runID, batchID string, wait time.Duration, reason string) error {
	return r.db.inTx(ctx, "abandon submission", func(q *db.Queries) error {
		_, err := q.ReleaseRewriteJobs(ctx, db.ReleaseRewriteJobsParams{Wait: wait, Error: reason, RunID: runID, BatchID: &batchID})
		if err != nil {
			return err
		}
		_, err = q.EndRewriteBatch(ctx, db.EndRewriteBatchParams{State: string(rewrite.Abandoned), BatchID: batchID})
		return err
	})
}

// Lease returns a batch in the given state that nobody works on and that this
// run has not looked at; ok is false if there is none.
func (r Rewrites) Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (s rewrite.Submission, ok bool, err error) {
	row, err := r.db.q.LeaseRewriteBatch(ctx, db.LeaseRewriteBatchParams{
		LeaseToken: c.Token, Lease: lease, State: string(state), RunID: c.RunID,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s, false, nil
	}
	if err != nil {
		return s, false, interpret("lease rewrite batch", err)
	}
	s, err = asSubmission(row.RewriteBatch)
	s.Age = time.Duration(row.Age * float64(time.Second))
	return s, true, err
}

// NotePoll ends the lease on a batch that is still at the provider.
func (r Rewrites) NotePoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error {
	_, err := r.db.q.NoteRewritePoll(ctx, db.NoteRewritePollParams{
		ProviderStatus: string(status), CancelAsked: cancelAsked, BatchID: batchID, LeaseToken: c.Token,
	})
	return interpret("record poll of a batch", err)
}

// BatchJobs returns all jobs of a batch in the order of its input file, whatever
// their status.
func (r Rewrites) BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error) {
	rows, err := r.db.q.RewriteJobsOfBatch(ctx, batchID)
	if err != nil {
		return nil, interpret("read jobs of a batch", err)
	}
	return asRewriteJobs(rows)
}

// EndBatch closes a batch, unless a job of it is undecided.
func (r Rewrites) EndBatch(ctx context.Context, batchID string, state rewrite.SubmissionState, status rewrite.BatchStatus) error {
	_, err := r.db.q.EndRewriteBatch(ctx, db.EndRewriteBatchParams{State: string(state), ProviderStatus: string(status), BatchID: batchID})
	return interpret("end rewrite batch", err)
}

// OpenBatches returns the batches that are not over, oldest first.
func (r Rewrites) OpenBatches(ctx context.Context) ([]rewrite.Submission, error) {
	rows, err := r.db.q.OpenRewriteBatches(ctx)
	if err != nil {
		return nil, interpret("list rewrite batches", err)
	}
	batches := make([]rewrite.Submission, len(rows))
	for i, row := range rows {
		if batches[i], err = asSubmission(row); err != nil {
			return nil, err
		}
	}
	return batches, nil
}

func asSubmission(row db.RewriteBatch) (rewrite.Submission, error) {
	s := rewrite.Submission{
		ID:             row.BatchID,
		State:          rewrite.SubmissionState(row.State),
		Requests:       int(row.Requests),
		Tokens:         int(row.Tokens),
		CreatedAt:      row.CreatedAt.UTC(),
		CreateBegunAt:  inUTC(row.CreateBegunAt),
		InputFileID:    text(row.InputFileID),
		CreateError:    text(row.CreateError),
		ProviderID:     text(row.ProviderBatchID),
		ProviderStatus: rewrite.BatchStatus(text(row.ProviderStatus)),
		SubmittedAt:    inUTC(row.SubmittedAt),
		CancelAskedAt:  inUTC(row.CancelAskedAt),
	}
	if json.Unmarshal(row.RoutingDecision, &s.Routing) != nil || json.Unmarshal(row.LanguagePair, &s.Languages) != nil {
		return s, failure.Errorf(failure.InvariantViolated, "read batch %s: its routing or languages are malformed", row.BatchID)
	}
	return s, nil
}
