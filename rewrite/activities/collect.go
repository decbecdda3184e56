package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// CollectBatches takes in the results of batches that have ended (queue 9). Each
// job gets a status of its own.
func (w *Working) CollectBatches(ctx context.Context) error { return w.collect(ctx, runOf(ctx)) }

func (w *Working) collect(ctx context.Context, runID string) error {
	deadline, err := w.deadline(ctx, runID)
	if err != nil {
		return err
	}
	claim := rewrite.NewClaim(runID, w.parts.Name)
	for room := w.cfg.Run.MaxCollectedPerRun(); room > 0 && time.Now().Before(deadline) && ctx.Err() == nil; {
		s, ok, err := w.parts.Queue.Lease(ctx, claim, rewrite.Submitted, w.cfg.Lease)
		if err != nil || !ok {
			return err
		}
		taken, err := w.collectOne(ctx, claim, s)
		if err != nil {
			return fmt.Errorf("collect batch %s: %w", s.ID, err)
		}
		room -= taken
	}
	return nil
}

// collectOne looks at one batch and returns how many of its jobs were decided.
func (w *Working) collectOne(ctx context.Context, claim rewrite.Claim, s rewrite.Submission) (int, error) {
	at, err := w.parts.Batches.Poll(ctx, s.Routing, s.ProviderID)
	switch {
	case failure.ClassOf(err) == failure.NotFound: // old batches vanish
		return w.conclude(ctx, claim, s, rewrite.ProviderBatch{Status: rewrite.BatchExpired}, failure.NotFound)
	case err != nil:
		w.lg.WarnContext(ctx, "batch could not be polled", "batch_id", s.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		return 0, w.parts.Queue.NotePoll(ctx, claim, s.ID, s.ProviderStatus, false)
	case at.Status.Final():
		return w.conclude(ctx, claim, s, at, failure.UpstreamInternal)
	}
	return w.wait(ctx, claim, s, at)
}

// wait leaves a batch at the provider, for as long as it may be there. One that
// takes too long is canceled, and one that does not even end then is given up.
func (w *Working) wait(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, at rewrite.ProviderBatch) (int, error) {
	late := s.Age > w.cfg.BatchTimeout
	if s.Age > w.cfg.BatchTimeout+cancelTime {
		return w.conclude(ctx, claim, s, at, failure.UpstreamUnavailable)
	}
	if late && s.CancelAskedAt == nil {
		if err := w.parts.Batches.Cancel(ctx, s.Routing, s.ProviderID); err != nil {
			w.lg.WarnContext(ctx, "late batch could not be canceled", "batch_id", s.ID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
			late = false
		}
	}
	return 0, w.parts.Queue.NotePoll(ctx, claim, s.ID, at.Status, late)
}

// cancelTime is for how long a provider may be about to cancel a batch.
const cancelTime = 2 * time.Hour

// chunk is how many results are written at a time: what a crash repeats.
const chunk = 200

// A collection is the taking in of one batch.
type collection struct {
	*Working
	by      rewrite.Holder
	route   rewrite.RoutingDecision
	open    map[string]rewrite.Job // undecided, by custom id
	results map[string]string      // not written yet
	failed  []rewrite.Verdict      // not written yet
	decided int
}

// conclude decides about every job of a batch that has ended. What the batch
// says nothing of has failed with class missing.
func (w *Working) conclude(ctx context.Context, claim rewrite.Claim, s rewrite.Submission, at rewrite.ProviderBatch, missing failure.Class) (int, error) {
	jobs, err := w.parts.Queue.BatchJobs(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	c := &collection{
		Working: w, by: rewrite.Holder{RunID: claim.RunID, BatchID: s.ID}, route: s.Routing,
		open: map[string]rewrite.Job{}, results: map[string]string{},
	}
	for _, job := range jobs {
		if job.Status == rewrite.BatchSubmitted {
			c.open[rewrite.Item{JobID: job.ID}.CustomID()] = job
		}
	}
	for _, file := range []string{at.OutputFileID, at.ErrorFileID} {
		if err := c.read(ctx, file); err != nil {
			return c.decided, err
		}
	}
	c.judgeProblems(jobs, at.Problems)
	for _, job := range c.open {
		c.failed = append(c.failed, w.failed(job, missing))
	}
	if err := c.flush(ctx); err != nil {
		return c.decided, err
	}
	w.lg.InfoContext(ctx, "batch collected", "batch_id", s.ID, "run_id", claim.RunID, "provider_status", at.Status, "jobs", c.decided)
	if err := w.parts.Queue.EndBatch(ctx, s.ID, rewrite.Collected, at.Status); err != nil {
		return c.decided, err
	}
	w.forget(ctx, s, at)
	return c.decided, nil
}

// forget removes a batch's files at the provider, where they hold messages. What
// cannot be removed expires there.
func (w *Working) forget(ctx context.Context, s rewrite.Submission, at rewrite.ProviderBatch) {
	for _, file := range []string{s.InputFileID, at.OutputFileID, at.ErrorFileID} {
		if file == "" {
			continue
		}
		if err := w.parts.Batches.Delete(ctx, s.Routing, file); err != nil {
			w.lg.WarnContext(ctx, "file of a batch was left at the provider", "batch_id", s.ID, "error_class", failure.ClassOf(err))
		}
	}
}

// read takes in the lines of a file. A file that is gone has none.
func (c *collection) read(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	err := c.parts.Batches.Results(ctx, c.route, file, func(line rewrite.Line) error { return c.take(ctx, line) })
	if failure.ClassOf(err) == failure.NotFound {
		return nil
	}
	return err
}

// take decides about the job of one line. The first line of a job counts; lines
// of jobs that are not of the batch, or not any more, do not.
func (c *collection) take(ctx context.Context, line rewrite.Line) error {
	job, ok := c.open[line.CustomID]
	if !ok {
		return nil
	}
	ref, err := "", line.Err
	if err == nil {
		ref, err = c.result(ctx, job, line.Answer)
		if err != nil && ourFault(err) {
			return err
		}
	}
	delete(c.open, line.CustomID)
	if err != nil {
		c.failed = append(c.failed, c.Working.failed(job, failure.ClassOf(err)))
	} else {
		c.results[job.ID] = ref
	}
	if len(c.results)+len(c.failed) >= chunk {
		return c.flush(ctx)
	}
	return nil
}

func (c *collection) result(ctx context.Context, job rewrite.Job, answer rewrite.Answer) (string, error) {
	item, message, err := c.item(ctx, job)
	if err != nil {
		return "", err
	}
	return c.accept(ctx, item, message, answer)
}

// judgeProblems decides about the jobs of a batch that was refused as a whole.
// Lines that are named as faulty fail for good. If the provider only had no room
// or the fault was that of other lines, that is no attempt.
func (c *collection) judgeProblems(jobs []rewrite.Job, problems []rewrite.BatchProblem) {
	innocent := false
	reason := rewrite.Overflow
	for _, p := range problems {
		switch {
		case p.Capacity:
			innocent, reason = true, rewrite.NoCapacity
		case p.Line > 0 && p.Line <= len(jobs):
			innocent = true
			c.refuseLine(jobs[p.Line-1])
		}
	}
	if !innocent {
		return
	}
	for id, job := range c.open {
		c.failed = append(c.failed, c.cfg.Run.Postpone(job, reason))
		delete(c.open, id)
	}
}

func (c *collection) refuseLine(job rewrite.Job) {
	id := rewrite.Item{JobID: job.ID}.CustomID()
	if _, ok := c.open[id]; ok {
		c.failed = append(c.failed, c.Working.failed(job, failure.InputInvalid))
		delete(c.open, id)
	}
}

// flush writes what was decided since the last time.
func (c *collection) flush(ctx context.Context) error {
	if err := c.complete(ctx, c.by, c.results); err != nil {
		return err
	}
	if err := c.settle(ctx, c.by, c.failed...); err != nil {
		return err
	}
	c.decided += len(c.results) + len(c.failed)
	c.results, c.failed = map[string]string{}, nil
	return nil
}
