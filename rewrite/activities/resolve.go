package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// skew bounds the difference between the provider's clock and ours.
const skew = time.Hour

// resolve decides about submissions whose worker was lost: it searches the provider for
// the batch by its submission key and its input file. It gets only submissions whose lease has expired, so
// no creation is in flight.
func (a *Activities) resolve(ctx context.Context, runID string) error {
	claim := rewrite.NewClaim(runID, a.parts.Name)
	for ctx.Err() == nil {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitting, a.cfg.Lease)
		if err != nil || !ok {
			return err
		}
		if err := a.resolveOne(ctx, runID, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *Activities) resolveOne(ctx context.Context, runID string, s rewrite.Submission) error {
	// Without CreateBegunAt the batch exists only if the database has lost a commit, as in a failover.
	found, err := a.parts.Provider.Find(ctx, s.Routing, s.ID, s.InputFileID, s.CreatedAt.Add(-skew))
	switch {
	case err != nil && s.Age <= a.cfg.BatchTimeout: // the next run searches again; until then the jobs stay bound
		a.lg.WarnContext(ctx, "search for a lost batch failed", "batch_id", s.ID, "run_id", runID, "error_class", failure.ClassOf(err))
		return nil
	case err != nil:
		class := failure.ClassOf(err)
		return a.unbind(ctx, runID, s, func(job rewrite.Job) rewrite.Outcome { return a.cfg.Run.AfterFailure(job, string(class), false) })
	case len(found) == 0:
		a.lg.InfoContext(ctx, "lost batch was never created", "batch_id", s.ID, "run_id", runID)
		return a.unbind(ctx, runID, s, func(job rewrite.Job) rewrite.Outcome {
			if s.CreateError == "" { // the worker crashed
				return rewrite.Outcome{JobID: job.ID, Status: rewrite.Queued, Attempts: job.AttemptCount, Error: rewrite.Overflow, Rounds: job.Rounds}
			}
			return a.cfg.Run.Refuse(job, s.CreateError)
		})
	}
	a.lg.InfoContext(ctx, "lost batch found", "batch_id", s.ID, "run_id", runID, "provider_batch_id", found[0].ID)
	return a.parts.Queue.MarkSubmitted(ctx, runID, s.ID, found[0])
}

// unbind queues or fails the jobs of a batch that does not exist, or is not searched any more.
func (a *Activities) unbind(ctx context.Context, runID string, s rewrite.Submission, of func(rewrite.Job) rewrite.Outcome) error {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return err
	}
	var outcomes []rewrite.Outcome
	for _, job := range jobs {
		if job.Status == rewrite.Processing {
			outcomes = append(outcomes, of(job))
		}
	}
	if err := a.settle(ctx, rewrite.Writer{RunID: runID, BatchID: s.ID}, outcomes...); err != nil {
		return err
	}
	return a.parts.Queue.EndBatch(ctx, s.ID, rewrite.Abandoned, "")
}
