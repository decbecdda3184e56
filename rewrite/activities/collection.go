package activities

import (
	"context"
	"maps"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// flushSize is how many outcomes are written at a time.
const flushSize = 200

// A collection holds the jobs of one batch while its results are read. Nothing is written
// before all lines are read.
type collection struct {
	*Activities
	by      rewrite.Holder
	routing rewrite.RoutingDecision
	open    map[string]rewrite.Job // undecided, by id
	seen    map[string]bool        // jobs of the batch with a line; false: not yet
	answers map[string]string      // references of stored results, by job id
	errors  map[string]failure.Class
	// unknown and repeated count the lines of no job, and of jobs with another line.
	unknown, repeated int
	truncated         bool // the output was not read to its end: a later line may contradict an earlier one

	results map[string]string // not yet written
	failed  []rewrite.Verdict // not yet written
	decided int
}

func newCollection(a *Activities, claim rewrite.Claim, s rewrite.Submission, jobs []rewrite.Job) *collection {
	c := &collection{
		Activities: a, by: rewrite.Holder{RunID: claim.RunID, BatchID: s.ID}, routing: s.Routing,
		open: map[string]rewrite.Job{}, seen: map[string]bool{}, answers: map[string]string{}, errors: map[string]failure.Class{},
		results: map[string]string{},
	}
	for _, job := range jobs {
		c.seen[job.ID] = false
		if job.Status == rewrite.BatchSubmitted {
			c.open[job.ID] = job
		}
	}
	return c
}

// readAll reads the lines of the files. unread is an error of the provider, err one of ours.
func (c *collection) readAll(ctx context.Context, output, errors string) (unread, err error) {
	for _, file := range []string{output, errors} {
		if file == "" {
			continue
		}
		failed := c.parts.Provider.Results(ctx, c.routing, file, func(line rewrite.Line) error {
			err = c.decide(ctx, line)
			return err
		})
		if err != nil {
			return nil, err
		}
		if failed != nil {
			unread, c.truncated = failed, c.truncated || file == output
		}
	}
	// From here on, seen has only the jobs with a line.
	maps.DeleteFunc(c.seen, func(_ string, line bool) bool { return !line })
	return unread, nil
}

// lacks reports whether the files may lack results that the provider has: they have fewer
// lines than it counts, lines of no job, or none although it has completed the batch.
func (c *collection) lacks(at rewrite.ProviderBatch) bool {
	return len(c.seen) < at.Lines || c.unknown > 0 || len(c.seen) == 0 && at.Status == rewrite.BatchCompleted
}

// decide reads one line. A result counts more than an error. Two different results of one
// job are both refused: which of them belongs to the job is not known.
func (c *collection) decide(ctx context.Context, line rewrite.Line) error {
	seen, known := c.seen[line.JobID]
	if !known {
		c.unknown++
		return nil
	}
	c.seen[line.JobID] = true
	if seen {
		c.repeated++
	}
	job, open := c.open[line.JobID]
	if !open {
		return nil
	}
	ref, err := "", line.Err
	if err == nil {
		ref, err = c.result(ctx, job, line.Answer)
		if err != nil && ownFault(err) {
			return err
		}
	}
	first, answered := c.answers[job.ID]
	switch {
	case err != nil:
		c.errors[job.ID] = failure.ClassOf(err)
	case answered && first != ref:
		c.answers[job.ID], c.errors[job.ID] = "", failure.SchemaInvalid
	default:
		c.answers[job.ID] = ref
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

// decideRead decides about the jobs with lines. If mayWait is set, it waits for the whole
// output.
func (c *collection) decideRead(mayWait bool) {
	if c.truncated && mayWait {
		return
	}
	for id, job := range c.open {
		if ref := c.answers[id]; ref != "" {
			c.results[id] = ref
		} else if class, failed := c.errors[id]; failed {
			c.failed = append(c.failed, c.Activities.failed(job, class))
		} else {
			continue
		}
		delete(c.open, id)
	}
}

// decideProblems decides about the jobs of a batch that was rejected as a whole. Jobs
// of faulty lines fail permanently. If the provider had no room, or other lines were
// faulty, the other jobs are queued and no attempt is counted. If the provider names
// neither, the halves of the batch are submitted separately, until the job at fault is
// alone. If jobs are missing, because a crashed worker has queued them again, the numbers of
// the lines are those of other jobs.
func (c *collection) decideProblems(s rewrite.Submission, jobs []rewrite.Job, at rewrite.ProviderBatch) {
	reason := ""
	for _, p := range at.Problems {
		switch {
		case p.Capacity:
			reason = rewrite.NoCapacity
		case p.Line > 0 && p.Line <= s.Requests:
			if reason == "" {
				reason = rewrite.Overflow
			}
			if len(jobs) < s.Requests {
				break
			}
			if job, ok := c.open[jobs[p.Line-1].ID]; ok {
				c.failed = append(c.failed, c.Activities.failed(job, failure.InputInvalid))
				delete(c.open, job.ID)
			}
		}
	}
	half := 0
	if reason == "" && at.Status == rewrite.BatchFailed && len(c.open) > 1 {
		reason, half = rewrite.Bisected, len(c.open)/2
	}
	if reason == "" {
		return
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(job rewrite.Job) bool { _, open := c.open[job.ID]; return !open })
	for i, job := range jobs {
		v := c.cfg.Run.Postpone(job, reason)
		if half > 0 && i < half {
			v.Part = s.ID + "/1"
		} else if half > 0 {
			v.Part = s.ID + "/2"
		}
		c.failed = append(c.failed, v)
	}
	clear(c.open)
}

// failOpen fails an attempt of the undecided jobs.
func (c *collection) failOpen(class failure.Class) {
	for _, job := range c.open {
		c.failed = append(c.failed, c.Activities.failed(job, class))
	}
	clear(c.open)
}

func (c *collection) flush(ctx context.Context) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(c.results)), flushSize) {
		part := map[string]string{}
		for _, id := range ids {
			part[id] = c.results[id]
		}
		if err := c.complete(ctx, c.by, part); err != nil {
			return err
		}
		c.decided += len(part)
	}
	for part := range slices.Chunk(c.failed, flushSize) {
		if err := c.settle(ctx, c.by, part...); err != nil {
			return err
		}
		c.decided += len(part)
	}
	return nil
}
