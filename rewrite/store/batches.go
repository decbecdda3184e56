package store

import (
	"context"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// PendingBatches returns how many batches in the given state have no lease.
func (q *Queue) PendingBatches(ctx context.Context, state rewrite.SubmissionState) (int, error) {
	pending, err := q.q.PendingBatches(ctx, state)
	return pending, postgres.Interpret("count pending batches", err)
}

// Enqueued returns the tokens of a model's batches at its provider, and lowers limits to those that
// the last refusal within a day has taught.
func (q *Queue) Enqueued(ctx context.Context, model rewrite.Model, limits *rewrite.BatchLimits) (int, error) {
	row, err := q.q.Enqueued(ctx, db.EnqueuedParams{Provider: model.Provider, Model: model.Name})
	if row.LimitRequests > 0 {
		limits.Requests = min(limits.Requests, row.LimitRequests)
	}
	if row.LimitTokens > 0 {
		limits.Tokens = min(limits.Tokens, row.LimitTokens)
	}
	return row.Tokens, postgres.Interpret("count enqueued tokens", err)
}

// LearnLimit records that the provider refused a batch for its size or, if full is set, for what
// is enqueued: the limit is at most half of that.
func (q *Queue) LearnLimit(ctx context.Context, batchID string, full bool) error {
	return postgres.Interpret("record a limit of a provider", q.q.LearnLimit(ctx, db.LearnLimitParams{BatchID: batchID, FullUp: full}))
}

// PartState reports whether the provider executed another job of the batch that a rejected part is
// of, and whether it rejected the other half of it as well.
func (q *Queue) PartState(ctx context.Context, part string) (works, alike bool, err error) {
	root, path, ok := strings.Cut(part, "/")
	if !ok || path == "" {
		return false, false, nil
	}
	last := len(path) - 1
	row, err := q.q.PartState(ctx, db.PartStateParams{
		Root: root + "/", Sibling: root + "/" + path[:last] + string('1'+'2'-path[last]),
	})
	return row.Works, row.Alike, postgres.Interpret("read the state of a part", err)
}

// BeginSubmission records the submission key of a batch and binds the jobs to it,
// before the first request to the provider. The caller gets a lease on the batch, by
// the claim's token. If the claim has lost a job, nothing is written and the error has
// class WRITE_CONFLICT.
func (q *Queue) BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error {
	return q.inTx(ctx, "begin submission", func(tx *db.Queries) error {
		err := tx.InsertBatch(ctx, db.InsertBatchParams{
			BatchID: s.ID, RoutingDecision: s.Routing, LanguagePair: s.Languages, Lane: s.Languages.Lane(),
			Requests: len(jobIDs), Tokens: s.Tokens,
			RunID: c.RunID, LeaseToken: c.Token, Lease: lease,
		})
		if err != nil {
			return err
		}
		bound, err := tx.BindJobs(ctx, db.BindJobsParams{BatchID: s.ID, JobIds: jobIDs, ClaimToken: c.Token})
		if err == nil && int(bound) != len(jobIDs) {
			return lost("bind %d jobs to a batch", len(jobIDs))
		}
		return err
	})
}

// Installation returns the name of this installation in the metadata of its batches, and whether a
// search for unknown ones is due.
func (q *Queue) Installation(ctx context.Context) (id string, lookDue bool, err error) {
	row, err := q.q.Installation(ctx)
	return row.ID, row.LookDue, postgres.Interpret("read the installation", err)
}

// RecordLook records a search for unknown batches.
func (q *Queue) RecordLook(ctx context.Context) error {
	return postgres.Interpret("record a search for batches", q.q.RecordLook(ctx))
}

// BatchRoutes returns a decision per provider that has had batches within a month.
func (q *Queue) BatchRoutes(ctx context.Context) ([]rewrite.RoutingDecision, error) {
	routes, err := q.q.BatchRoutes(ctx)
	return routes, postgres.Interpret("read the providers of batches", err)
}

// KnowsBatch reports whether a batch of the provider has a row.
func (q *Queue) KnowsBatch(ctx context.Context, at rewrite.ProviderBatch) (bool, error) {
	known, err := q.q.KnowsBatch(ctx, db.KnowsBatchParams{Key: at.Key, ProviderBatchID: at.ID})
	return known, postgres.Interpret("look for a batch", err)
}

// RestoreBatch makes the row of a batch that the provider has and the database has lost, with those of
// the listed jobs that are queued, and returns their number. Without any it writes nothing.
func (q *Queue) RestoreBatch(ctx context.Context, c rewrite.Claim, provider string, at rewrite.ProviderBatch, jobIDs []string) (restored int, err error) {
	err = q.inTx(ctx, "restore batch", func(tx *db.Queries) error {
		rows, err := tx.ClaimListed(ctx, db.ClaimListedParams{Worker: c.Worker, ClaimToken: c.Token, RunID: c.RunID, JobIds: jobIDs, Provider: provider})
		if restored = len(rows); err != nil || restored == 0 {
			return err
		}
		job, ids := asJob(rows[0]), make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.JobID
		}
		if err := tx.InsertBatch(ctx, db.InsertBatchParams{
			BatchID: at.Key, RoutingDecision: *job.Routing, LanguagePair: job.Languages, Lane: job.Languages.Lane(), Requests: restored,
			RunID: c.RunID, LeaseToken: c.Token,
		}); err != nil {
			return err
		}
		if _, err := tx.BindJobs(ctx, db.BindJobsParams{BatchID: at.Key, JobIds: ids, ClaimToken: c.Token}); err != nil {
			return err
		}
		if _, err := tx.MarkBatchSubmitted(ctx, db.MarkBatchSubmittedParams{ProviderBatchID: at.ID, ProviderStatus: string(at.Status), BatchID: at.Key}); err != nil {
			return err
		}
		_, err = tx.MarkJobsSubmitted(ctx, db.MarkJobsSubmittedParams{RunID: c.RunID, BatchID: at.Key})
		return err
	})
	return restored, err
}

// BeginCreation records the uploaded file and renews the lease before the batch is
// created: from then on the provider may have the batch. The error has class
// WRITE_CONFLICT if the lease has expired.
func (q *Queue) BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error {
	n, err := q.q.RecordUpload(ctx, db.RecordUploadParams{
		InputFileID: fileID, Lease: lease, BatchID: batchID, LeaseToken: c.Token,
	})
	if err == nil && n == 0 {
		return lost("create batch %s", batchID)
	}
	return postgres.Interpret("record upload of a batch", err)
}

// RecordCreateError records the error class of a creation that may have created the
// batch.
func (q *Queue) RecordCreateError(ctx context.Context, c rewrite.Claim, batchID, class string) error {
	return postgres.Interpret("record error of a batch creation", q.q.RecordCreateError(ctx, db.RecordCreateErrorParams{
		CreateError: class, BatchID: batchID, LeaseToken: c.Token,
	}))
}

// MarkSubmitted records the provider's ID of a batch and marks its jobs submitted. It
// may be called again.
func (q *Queue) MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error {
	return q.inTx(ctx, "mark batch submitted", func(tx *db.Queries) error {
		n, err := tx.MarkBatchSubmitted(ctx, db.MarkBatchSubmittedParams{
			ProviderBatchID: at.ID, ProviderStatus: string(at.Status), BatchID: batchID,
		})
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.MarkJobsSubmitted(ctx, db.MarkJobsSubmittedParams{RunID: runID, BatchID: batchID})
		return err
	})
}

// Lease leases a batch in the given state that has no lease and that this run has not
// polled; ok is false if there is none.
func (q *Queue) Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (s rewrite.Submission, ok bool, err error) {
	row, err := q.q.LeaseBatch(ctx, db.LeaseBatchParams{
		LeaseToken: c.Token, Lease: lease, State: state, RunID: c.RunID,
	})
	if postgres.NoRow(err) {
		return s, false, nil
	}
	s = asSubmission(row.Batch)
	s.Age, s.FinalAge = seconds(row.Age), seconds(row.FinalAge)
	return s, err == nil, postgres.Interpret("lease batch", err)
}

// RecordPoll records the provider's status and ends the lease on a batch that the
// provider has not finished, or whose results could not be read yet.
func (q *Queue) RecordPoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error {
	_, err := q.q.RecordPoll(ctx, db.RecordPollParams{
		ProviderStatus: string(status), Final: status.Final(), CancelAsked: cancelAsked, BatchID: batchID, LeaseToken: c.Token,
	})
	return postgres.Interpret("record poll of a batch", err)
}

// BatchJobs returns all jobs of a batch, in any status, in the order of its input
// file.
func (q *Queue) BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error) {
	rows, err := q.q.JobsOfBatch(ctx, batchID)
	return postgres.Convert("read jobs of a batch", rows, err, asJob)
}

// EndBatch closes a batch, unless one of its jobs is undecided.
func (q *Queue) EndBatch(ctx context.Context, batchID string, state rewrite.SubmissionState, status rewrite.BatchStatus) error {
	_, err := q.q.EndBatch(ctx, db.EndBatchParams{State: state, ProviderStatus: string(status), BatchID: batchID})
	return postgres.Interpret("end batch", err)
}

// DropSubmission ends a batch that the provider refused; its jobs stay claimed and may
// join another one.
func (q *Queue) DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error {
	return q.inTx(ctx, "drop submission", func(tx *db.Queries) error {
		if err := tx.UnbindJobs(ctx, db.UnbindJobsParams{BatchID: batchID, ClaimToken: c.Token}); err != nil {
			return err
		}
		_, err := tx.EndBatch(ctx, db.EndBatchParams{State: rewrite.Abandoned, BatchID: batchID})
		return err
	})
}

// Batches returns the newest batches: the open ones, or with ended all.
func (q *Queue) Batches(ctx context.Context, ended bool, limit int) ([]rewrite.Submission, error) {
	rows, err := q.q.Batches(ctx, db.BatchesParams{Ended: ended, MaxBatches: limit})
	return postgres.Convert("list batches", rows, err, asSubmission)
}

// Batch returns one batch.
func (q *Queue) Batch(ctx context.Context, batchID string) (rewrite.Submission, error) {
	row, err := q.q.Batch(ctx, batchID)
	return asSubmission(row), postgres.Missing("batch", batchID, err)
}

// AbandonBatch ends an open batch, queues or fails its open jobs and returns their number.
// Each job is counted an attempt: the provider may have executed it. Results that arrive
// later change nothing. The audit log records who and why. The error has class
// WRITE_CONFLICT if the batch has ended.
func (q *Queue) AbandonBatch(ctx context.Context, batchID, who, reason string) (jobs int, err error) {
	err = q.inTx(ctx, "abandon batch", func(tx *db.Queries) error {
		freed, err := tx.AbandonJobs(ctx, db.AbandonJobsParams{BatchID: batchID, Error: rewrite.BatchAbandoned})
		if err != nil {
			return err
		}
		jobs = int(freed)
		n, err := tx.AbandonBatch(ctx, batchID)
		if err != nil {
			return err
		}
		if n == 0 {
			return failure.Errorf(failure.WriteConflict, "abandon batch %s: it has ended or does not exist", batchID)
		}
		return audit(ctx, tx, "batch:"+batchID, who, "rewrite.batch.abandon", map[string]any{"reason": reason, "jobs": jobs})
	})
	return jobs, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func asSubmission(row db.Batch) rewrite.Submission {
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
