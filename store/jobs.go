package store

import (
	"context"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// OpenJob decides whether a request is reviewed, so that each version of a
// changelist is reviewed once (notification 6.1, 6.2, 10.1, 10.4). It decides
// one request per changelist at a time. Reviews of a shelf do not count; if they have
// taken the requested version, the job gets the next one.
//
//   - run: the request is new, or its own job has not succeeded. An existing job is
//     returned with its run: if that is not runID, [DB.BeginReplay] makes it so.
//   - duplicate: the job succeeded or was forgotten, or its key or version belongs to
//     another job; that job is returned.
//   - refused: a higher version of the changelist exists, or the job is of another
//     Perforce server; that job is returned.
func (d *DB) OpenJob(ctx context.Context, req review.Request, runID string) (opened review.OpenResult, err error) {
	err = d.inTx(ctx, "open job", func(q *db.Queries) error {
		if err := q.LockChangelist(ctx, int64(req.Changelist)); err != nil {
			return err
		}
		job, err := q.DecidingJob(ctx, req.Key, req.Changelist, req.Version)
		sameVersion := job.Changelist == req.Changelist &&
			(job.Version == req.Version || job.AskedVersion != nil && *job.AskedVersion == int(req.Version))
		opened.Decision = review.DecisionDuplicate
		switch {
		case postgres.NoRow(err):
			opened.Decision = review.DecisionRun
			job, err = q.InsertJob(ctx, db.InsertJobParams{
				IdempotencyKey: req.Key, Changelist: req.Changelist, Version: int(req.Version),
				ServerID: req.ServerID, RunID: runID, OnlyNew: req.OnlyNew,
			})
		case err != nil:
		case job.Changelist == req.Changelist && job.ServerID != req.ServerID: // another change with the same number
			opened.Decision, opened.OtherServer = review.DecisionRefused, job.ServerID
		case job.IdempotencyKey == req.Key && sameVersion:
			if job.State != review.JobSucceeded && job.ForgottenAt == nil {
				opened.Decision = review.DecisionRun
			}
			if job.RunID != runID {
				opened.FormerRun = job.RunID
			}
		case job.IdempotencyKey != req.Key && !sameVersion:
			opened.Decision = review.DecisionRefused
		}
		opened.Job = asJob(job)
		return err
	})
	return opened, err
}

// FinishJob marks the job succeeded with the outcome that role llm recorded for the report,
// and resolves its dead letters. Without such an outcome, and unless every delivery of its
// version was notified or waived, it changes nothing and returns an error of class
// INVARIANT_VIOLATED (notification 6.5). A job that has succeeded before is returned
// unchanged.
func (d *DB) FinishJob(ctx context.Context, key string, report review.ArtifactRef) (review.Job, error) {
	return d.finish(ctx, key, "a delivery is neither notified nor waived, or stage llm recorded no outcome of the report", func(q *db.Queries) (bool, error) {
		return q.FinishJobIfAllNotified(ctx, key, string(report))
	})
}

// SkipJob marks the job succeeded without a review and resolves its dead letters, if role
// fetch recorded the rule, or if a shelf is skipped because of another one. Otherwise the
// error has class INVARIANT_VIOLATED. A job that has succeeded before is returned unchanged.
func (d *DB) SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error) {
	return d.finish(ctx, key, "stage fetch recorded no such rule", func(q *db.Queries) (bool, error) {
		return q.SkipJob(ctx, key, string(by))
	})
}

// finish ends a job by a statement that reports whether it changed the job; why says what
// the statement wanted.
func (d *DB) finish(ctx context.Context, key, why string, end func(*db.Queries) (bool, error)) (review.Job, error) {
	var job db.Job
	err := d.inTx(ctx, "finish job", func(q *db.Queries) error {
		ended, err := end(q)
		if err != nil {
			return err
		}
		if job, err = q.Job(ctx, key); err != nil {
			return err
		}
		if ended {
			return q.ResolveDeadLetters(ctx, key)
		}
		if job.State == review.JobSucceeded {
			return nil
		}
		return failure.Errorf(failure.InvariantViolated, "finish job %d, which is %s: %s", job.ID, job.State, why)
	})
	if err != nil {
		return review.Job{}, err
	}
	return asJob(job), nil
}

// CancelJob marks a running job canceled; how says by whom and why. A job that has ended is
// left unchanged, and a job that was canceled before it was opened has no row.
func (d *DB) CancelJob(ctx context.Context, key, how string) error {
	return d.CancelJobIfRunning(ctx, how, key)
}

// A Run is a run of a review as its job names it.
type Run struct{ WorkflowID, RunID string }

// ClaimWatch reports whether this worker has to look for ended reviews until the interval
// has passed. It returns true for one worker at a time.
func (d *DB) ClaimWatch(ctx context.Context, every time.Duration) (bool, error) {
	n, err := d.Queries.ClaimWatch(ctx, every)
	return n > 0, err
}

// ClaimUnfinished returns some reviews that are unfinished or replayed, and that no
// worker has checked for a while.
func (d *DB) ClaimUnfinished(ctx context.Context) ([]Run, error) {
	const atMost, uncheckedFor = 50, 20 * time.Second
	rows, err := d.ClaimUnfinishedJobs(ctx, uncheckedFor, atMost)
	return convert(rows, err, func(r db.ClaimUnfinishedJobsRow) Run { return Run{r.IdempotencyKey, r.RunID} })
}

// CloseEnded closes the job of a review whose newest run has ended, as how states, but has not
// closed its job: it was terminated, timed out or deleted. The job is
// canceled; if the review has unresolved dead letters, it is dead-lettered and they are open
// again. A job of another run than r, or that has been closed meanwhile, is left unchanged;
// state is empty then.
func (d *DB) CloseEnded(ctx context.Context, r Run, how string) (state review.JobState, err error) {
	err = d.inTx(ctx, "close job of an ended run", func(q *db.Queries) error {
		job, err := q.LockJob(ctx, r.WorkflowID)
		if err != nil || job.RunID != r.RunID {
			return err
		}
		reopened, err := q.ReopenReplayedDeadLetters(ctx, r.WorkflowID)
		if err != nil {
			return err
		}
		for _, letter := range reopened {
			if err := auditLetter(ctx, q, "bookkeeping", "reopen", letter, map[string]any{"note": "replay abandoned: " + how}); err != nil {
				return err
			}
		}
		state, err = q.CloseEndedJob(ctx, how, r.WorkflowID, r.RunID)
		if postgres.NoRow(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return audit(ctx, q, "workflow:"+r.WorkflowID, "bookkeeping", "close", map[string]any{"note": how, "state": state})
	})
	return state, err
}

// Job returns the job with the given idempotency key.
func (d *DB) Job(ctx context.Context, key string) (review.Job, error) {
	job, err := d.Queries.Job(ctx, key)
	return asJob(job), err
}

// Credit returns what the reviews of submitted changelists say. A changelist without a review
// is missing. One whose findings are not all known counts as not read.
func (d *DB) Credit(ctx context.Context, changes []review.Changelist) (map[review.Changelist]review.Credit, error) {
	rows, err := d.CreditOfChangelists(ctx, numbers(changes))
	known := make(map[review.Changelist]review.Credit, len(rows))
	for _, r := range rows {
		c, again := known[r.Changelist]
		if !again {
			c.Read = r.IsRead
		}
		switch {
		case r.Fingerprint == "", r.Accepted:
		case !r.Verbatim && (r.Path == "" || strings.Contains(r.Path, "[REDACTED")):
			c.Read = false
		default:
			c.Findings = append(c.Findings, review.CreditedFinding{
				Origin: review.Origin{Changelist: review.Changelist(r.OfChangelist), Version: review.Version(r.OfVersion), Fingerprint: r.Fingerprint},
				Others: r.PlaceFingerprints, Path: r.Path, Category: review.Category(r.Category), Severity: review.Severity(r.Severity), Verbatim: r.Verbatim,
			})
		}
		known[r.Changelist] = c
	}
	return known, err
}

func numbers(changes []review.Changelist) []int64 {
	numbers := make([]int64, len(changes))
	for i, cl := range changes {
		numbers[i] = int64(cl)
	}
	return numbers
}

func asJob(j db.Job) review.Job {
	return review.Job{
		ID:         j.ID,
		Key:        j.IdempotencyKey,
		Changelist: j.Changelist,
		Version:    j.Version,
		State:      j.State,
		Outcome:    postgres.OrZero(j.Outcome),
		Findings:   j.Findings,
		Coverage:   postgres.OrZero(j.Coverage),
		SkippedBy:  postgres.OrZero(j.SkippedBy),
		Shelved:    j.Shelved,
		Forgotten:  j.ForgottenAt != nil,
		WorkflowID: j.IdempotencyKey,
		RunID:      j.RunID,
	}
}
