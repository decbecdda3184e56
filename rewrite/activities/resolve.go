package activities

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
)

// skew bounds the difference between the provider's clock and ours.
const skew = time.Hour

// resolve decides about submissions whose worker was lost: it searches the provider for
// the batch by its submission key and its input file. It gets only submissions whose lease has expired, so
// no creation is in flight.
func (a *Activities) resolve(ctx context.Context, runID string) error {
	claim := rewrite.NewClaim(runID, a.parts.Name)
	for ctx.Err() == nil {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitting, a.cfg.lease())
		if err != nil || !ok {
			return err
		}
		if err := a.resolveOne(ctx, claim, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *Activities) resolveOne(ctx context.Context, claim rewrite.Claim, s store.Submission) error {
	// Without CreateBegunAt the batch exists only if the database has lost a commit, as in a failover.
	found, err := a.find(ctx, s, s.CreatedAt)
	switch {
	case err != nil && s.Age <= batchTimeout: // the next run searches again; until then the jobs stay bound
		a.lg.WarnContext(ctx, "search for a lost batch failed", "batch_id", s.BatchID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		return nil
	case err != nil:
		class := failure.ClassOf(err)
		return a.unbind(ctx, claim, s, func(job rewrite.Job) rewrite.Outcome { return a.cfg.Run.AfterFailure(job, string(class), false) })
	case found == nil:
		a.lg.InfoContext(ctx, "lost batch was never created", "batch_id", s.BatchID, "run_id", claim.RunID)
		return a.unbind(ctx, claim, s, func(job rewrite.Job) rewrite.Outcome {
			if s.CreateError == "" { // the worker crashed
				return rewrite.Outcome{JobID: job.ID, Status: rewrite.Queued, Attempts: job.AttemptCount, Error: rewrite.Overflow, Rounds: job.Rounds}
			}
			return a.cfg.Run.Refuse(job, s.CreateError)
		})
	}
	a.lg.InfoContext(ctx, "lost batch found", "batch_id", s.BatchID, "run_id", claim.RunID, "provider_batch_id", found.ID)
	return a.parts.Queue.MarkSubmitted(ctx, claim.RunID, s.BatchID, *found)
}

// find returns the oldest batch since a time with the key or the input file of a submission, or nil.
func (a *Activities) find(ctx context.Context, s store.Submission, since time.Time) (found *rewrite.ProviderBatch, err error) {
	batches, err := a.parts.Provider.Batches(ctx, s.RoutingDecision, since.Add(-skew))
	for _, b := range batches {
		if b.Key == s.BatchID || s.InputFileID != "" && b.InputFileID == s.InputFileID {
			found = &b
		}
	}
	switch {
	case found == nil:
		return nil, err
	case found.ID == "":
		return nil, failure.Errorf(failure.UpstreamInternal, "find batch %s: the provider's entry has no id", s.BatchID)
	}
	return found, nil // even if the rest of the list cannot be read
}

// unbind queues or fails the jobs of a batch that does not exist, or is not searched any more.
func (a *Activities) unbind(ctx context.Context, claim rewrite.Claim, s store.Submission, of func(rewrite.Job) rewrite.Outcome) error {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.BatchID)
	if err != nil {
		return err
	}
	var outcomes []rewrite.Outcome
	for _, job := range jobs {
		if job.Status == rewrite.Processing {
			outcomes = append(outcomes, of(job))
		}
	}
	if err := a.settle(ctx, claim, s.BatchID, outcomes...); err != nil {
		return err
	}
	return a.parts.Queue.EndBatch(ctx, rewrite.Abandoned, "", s.BatchID)
}

// The search for unknown batches skips those that may still be collected by another database, and
// those whose texts have expired.
const (
	youngest = 48 * time.Hour
	oldest   = 7 * 24 * time.Hour
)

// restore searches the providers, once a day, for batches of this installation that no row knows: the
// database may have lost commits in a failover, or is restored from a backup. If queued jobs have
// results in such a batch, it gets a row and is collected, and the jobs are not paid again. Otherwise it
// is only reported: another database may know it.
func (a *Activities) restore(ctx context.Context, claim rewrite.Claim) error {
	installation, err := a.parts.Queue.Installation(ctx)
	if err != nil || !installation.LookDue {
		return err
	}
	routes, err := a.parts.Queue.BatchRoutes(ctx)
	if err != nil {
		return err
	}
	if standard := a.parts.Standard; standard.Mode == rewrite.Batch && !slices.ContainsFunc(routes, func(r rewrite.RoutingDecision) bool { return r.Provider == standard.Provider }) {
		routes = append(routes, standard)
	}
	for _, to := range routes {
		batches, err := a.parts.Provider.Batches(ctx, to, time.Now().Add(-oldest))
		if err != nil { // the search of the next day repeats it
			a.lg.WarnContext(ctx, "search for unknown batches failed", "provider", to.Provider, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
			continue
		}
		for _, at := range batches {
			age := time.Since(at.CreatedAt)
			if at.Installation != installation.ID || at.ID == "" || age < youngest || age > oldest+skew || uuid.Validate(at.Key) != nil {
				continue
			}
			known, err := a.parts.Queue.KnowsBatch(ctx, at.Key, at.ID)
			if err != nil {
				return err
			}
			if known {
				continue
			}
			var jobs []string
			for _, file := range []string{at.OutputFileID, at.ErrorFileID} {
				if file != "" {
					_ = a.parts.Provider.Results(ctx, to, file, func(line rewrite.Line) error { // what cannot be read has no job
						jobs = append(jobs, line.JobID)
						return nil
					})
				}
			}
			restored, err := a.parts.Queue.RestoreBatch(ctx, claim, to.Provider, at, jobs)
			if err != nil {
				return err
			}
			a.lg.WarnContext(ctx, "batch of this installation has no row", "provider", to.Provider, "provider_batch_id", at.ID, "status", at.Status, "restored_jobs", restored)
		}
	}
	return a.parts.Queue.RecordLook(ctx)
}
