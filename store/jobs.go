package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// OpenJob is the dedupe gate (review-notification 6.1, 6.2, 10.1, 10.4). It
// decides one request per changelist at a time. Reviews of a shelf have versions
// too, but decide about nothing else: where they have taken the version that is
// asked for, the job has the next one.
//
//   - run: the request is new, or its own job has not succeeded. Opening an
//     unfinished job again is a retry or a full restart, and runID its new run.
//   - duplicate: the job succeeded, or its key or version belongs to another
//     job; that job is returned.
//   - refused: a higher version of the changelist exists; that job is returned.
func (d *DB) OpenJob(ctx context.Context, req review.Request, runID string) (review.Opening, error) {
	var opening review.Opening
	err := d.inTx(ctx, "open job", func(q *db.Queries) (err error) {
		if err := q.LockChangelist(ctx, int64(req.Changelist)); err != nil {
			return err
		}
		opening, err = openJob(ctx, q, req, runID)
		return err
	})
	return opening, err
}

func openJob(ctx context.Context, q *db.Queries, req review.Request, runID string) (review.Opening, error) {
	job, err := q.Incumbent(ctx, db.IncumbentParams{
		IdempotencyKey: req.Key, ChangelistID: req.Changelist, ReviewVersion: req.Version,
	})
	sameVersion := job.ChangelistID == req.Changelist &&
		(job.ReviewVersion == req.Version || job.AskedVersion != nil && *job.AskedVersion == int32(req.Version))
	verdict := review.VerdictDuplicate
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		verdict = review.VerdictRun
		job, err = q.InsertJob(ctx, db.InsertJobParams{
			IdempotencyKey: req.Key, ChangelistID: req.Changelist, ReviewVersion: int32(req.Version),
			ServerID: req.ServerID, RunID: runID,
		})
	case err != nil:
	case job.ChangelistID == req.Changelist && job.ServerID != req.ServerID:
		// Their numbers are the same, their changes are not.
		return review.Opening{Verdict: review.VerdictRefused, Job: asJob(job), OtherServer: job.ServerID}, nil
	case job.IdempotencyKey == req.Key && sameVersion && job.State != review.JobSucceeded:
		verdict = review.VerdictRun
		job, err = reopen(ctx, q, req.Key, runID)
	case job.IdempotencyKey != req.Key && !sameVersion:
		verdict = review.VerdictRefused
	}
	return review.Opening{Verdict: verdict, Job: asJob(job)}, err
}

// reopen begins a job again from its first stage.
func reopen(ctx context.Context, q *db.Queries, key, runID string) (db.Job, error) {
	if err := q.ReplayOpenDeadLetters(ctx, db.ReplayOpenDeadLettersParams{WorkflowID: key, NewRunID: runID}); err != nil {
		return db.Job{}, err
	}
	return q.ReopenUnfinishedJob(ctx, db.ReopenUnfinishedJobParams{IdempotencyKey: key, RunID: runID})
}

// FinishJob marks the job succeeded, keeps where its report is, and resolves its
// dead letters. Unless every
// delivery of its version has been notified or waived, it changes nothing and
// returns an error of class INVARIANT_VIOLATED (review-notification 6.5). A job
// that has succeeded before is returned as it is.
func (d *DB) FinishJob(ctx context.Context, key string, outcome review.Outcome, findings int, report review.ArtifactRef) (review.Job, error) {
	return d.finish(ctx, key, func(q *db.Queries) (db.Job, error) {
		return q.FinishJobIfAllTold(ctx, db.FinishJobIfAllToldParams{
			IdempotencyKey: key, Outcome: string(outcome), Findings: int32(findings), Report: string(report),
		})
	})
}

// SkipJob marks the job succeeded without a review, and resolves its dead
// letters. A job that has succeeded before is returned as it is.
func (d *DB) SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error) {
	return d.finish(ctx, key, func(q *db.Queries) (db.Job, error) {
		return q.SkipJob(ctx, db.SkipJobParams{IdempotencyKey: key, SkippedBy: string(by)})
	})
}

// finish ends a job by a statement that returns it, or no row if it may not.
func (d *DB) finish(ctx context.Context, key string, end func(*db.Queries) (db.Job, error)) (review.Job, error) {
	var job db.Job
	err := d.inTx(ctx, "finish job", func(q *db.Queries) (err error) {
		job, err = end(q)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			job, err = succeeded(ctx, q, key)
			return err
		case err != nil:
			return err
		}
		return q.ResolveDeadLetters(ctx, key)
	})
	return asJob(job), err
}

// succeeded returns the job that has succeeded before, or says why it has not.
func succeeded(ctx context.Context, q *db.Queries, key string) (db.Job, error) {
	job, err := q.Job(ctx, key)
	if err != nil || job.State == review.JobSucceeded {
		return job, err
	}
	return db.Job{}, failure.Errorf(failure.InvariantViolated,
		"finish job %d, which is %s: a recipient has been neither notified nor waived", job.ID, job.State)
}

// CancelJob marks a running job canceled. A job that has ended stays as it is;
// one that was canceled before it was opened has no row, and needs none.
func (d *DB) CancelJob(ctx context.Context, key string) error {
	_, err := d.q.CancelJobIfRunning(ctx, key)
	return interpret("cancel job", err)
}

// Job returns the job with the given idempotency key.
func (d *DB) Job(ctx context.Context, key string) (review.Job, error) {
	job, err := d.q.Job(ctx, key)
	return asJob(job), interpret("read job", err)
}

func asJob(j db.Job) review.Job {
	job := review.Job{
		ID:         j.ID,
		Key:        j.IdempotencyKey,
		Changelist: j.ChangelistID,
		Version:    j.ReviewVersion,
		State:      j.State,
		Findings:   int(j.Findings),
		WorkflowID: j.IdempotencyKey,
		RunID:      j.RunID,
		Shelved:    j.Shelved,
	}
	if j.SkippedBy != nil {
		job.SkippedBy = review.SkipRule(*j.SkippedBy)
	}
	if j.Outcome != nil {
		job.Outcome = review.Outcome(*j.Outcome)
	}
	return job
}
