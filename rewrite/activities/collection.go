package activities

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// flushSize is how many outcomes are written at a time. A crash repeats at most so
// many.
const flushSize = 200

// A collection holds the jobs of one batch while its results are read.
type collection struct {
	*Activities
	by      rewrite.Holder
	routing rewrite.RoutingDecision
	open    map[string]rewrite.Job // undecided, by id
	results map[string]string      // not yet written
	failed  []rewrite.Verdict      // not yet written
	decided int
}

func newCollection(a *Activities, claim rewrite.Claim, s rewrite.Submission, jobs []rewrite.Job) *collection {
	c := &collection{
		Activities: a, by: rewrite.Holder{RunID: claim.RunID, BatchID: s.ID}, routing: s.Routing,
		open: map[string]rewrite.Job{}, results: map[string]string{},
	}
	for _, job := range jobs {
		if job.Status == rewrite.BatchSubmitted {
			c.open[job.ID] = job
		}
	}
	return c
}

// read reads the lines of a file. A missing file has none.
func (c *collection) read(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	err := c.parts.Provider.Results(ctx, c.routing, file, func(line rewrite.Line) error { return c.decide(ctx, line) })
	if failure.ClassOf(err) == failure.NotFound {
		return nil
	}
	return err
}

// decide decides about the job of one line. The first line of a job counts. Lines of
// other jobs, and of jobs that have left the batch, are ignored.
func (c *collection) decide(ctx context.Context, line rewrite.Line) error {
	job, ok := c.open[line.JobID]
	if !ok {
		return nil
	}
	ref, err := "", line.Err
	if err == nil {
		ref, err = c.result(ctx, job, line.Answer)
		if err != nil && ownFault(err) {
			return err
		}
	}
	delete(c.open, job.ID)
	if err != nil {
		c.failed = append(c.failed, c.Activities.failed(job, failure.ClassOf(err)))
	} else {
		c.results[job.ID] = ref
	}
	if len(c.results)+len(c.failed) >= flushSize {
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

// decideProblems decides about the jobs of a batch that was rejected as a whole. Jobs
// of faulty lines fail permanently. If the provider had no room, or other lines were
// faulty, the other jobs are queued and no attempt is counted.
func (c *collection) decideProblems(jobs []rewrite.Job, problems []rewrite.BatchProblem) {
	reason := ""
	for _, p := range problems {
		switch {
		case p.Capacity:
			reason = rewrite.NoCapacity
		case p.Line > 0 && p.Line <= len(jobs):
			if reason == "" {
				reason = rewrite.Overflow
			}
			if job, ok := c.open[jobs[p.Line-1].ID]; ok {
				c.failed = append(c.failed, c.Activities.failed(job, failure.InputInvalid))
				delete(c.open, job.ID)
			}
		}
	}
	if reason == "" {
		return
	}
	for id, job := range c.open {
		c.failed = append(c.failed, c.cfg.Run.Postpone(job, reason))
		delete(c.open, id)
	}
}

// flush writes the outcomes since the last flush.
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
