package activities

import (
	"context"
	"maps"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
)

// flushSize is how many outcomes are written at a time.
const flushSize = 200

// A collection holds the jobs of one batch while its results are read. Nothing is written
// before all lines are read.
type collection struct {
	*Activities
	claim   rewrite.Claim
	batchID string
	routing rewrite.RoutingDecision
	open    map[string]rewrite.Job // undecided, by id
	seen    map[string]bool        // jobs of the batch with a line; false: not yet
	answers map[string]string      // references of stored results, by job id
	errors  map[string]failure.Class
	// unknown and repeated count the lines of no job, and of jobs with another line.
	unknown, repeated int
	works             bool // the model executed one of the jobs
	truncated         bool // the output was not read to its end: a later line may contradict an earlier one

	outcomes []rewrite.Outcome // not yet written
	decided  int
}

func newCollection(a *Activities, claim rewrite.Claim, s store.Submission, jobs []rewrite.Job) *collection {
	c := &collection{
		Activities: a, claim: claim, batchID: s.BatchID, routing: s.RoutingDecision,
		open: map[string]rewrite.Job{}, seen: map[string]bool{}, answers: map[string]string{}, errors: map[string]failure.Class{},
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
	switch class := failure.ClassOf(err); {
	case err != nil:
		c.errors[job.ID] = class
		c.works = c.works || executed(class)
	case answered && first != ref:
		c.works = true
		c.answers[job.ID], c.errors[job.ID] = "", failure.SchemaInvalid
	default:
		c.works = true
		c.answers[job.ID] = ref
	}
	return nil
}

func (c *collection) result(ctx context.Context, job rewrite.Job, answer string) (string, error) {
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
			c.outcomes = append(c.outcomes, job.Done(ref))
		} else if class, failed := c.errors[id]; failed {
			c.outcomes = append(c.outcomes, c.failed(job, class, c.works))
		} else {
			continue
		}
		delete(c.open, id)
	}
}

// decideRejected decides about the jobs of a batch that was rejected as a whole. Jobs of faulty
// lines fail permanently, unless every line is called faulty; the others are queued. If the
// provider has no room, or refuses the model or the account, the jobs are queued and no attempt is
// counted. Without a reason the batch is divided. If jobs are missing, because a crashed worker has
// queued them again, the numbers of the lines are those of other jobs.
func (c *collection) decideRejected(ctx context.Context, s store.Submission, jobs []rewrite.Job, at rewrite.ProviderBatch) (err error) {
	if at.Status != rewrite.BatchFailed || len(c.open) == 0 {
		return nil
	}
	faulty := map[string]bool{} // by job
	for _, line := range at.FaultyLines {
		if line <= s.Requests {
			id := ""
			if len(jobs) == s.Requests {
				id = jobs[line-1].ID
			}
			faulty[id] = true
		}
	}
	var open []rewrite.Job // in the order of the input file
	for _, job := range jobs {
		if _, undecided := c.open[job.ID]; undecided {
			open = append(open, job)
		}
	}
	clear(c.open)
	var outcomes []rewrite.Outcome
	switch {
	case at.Full:
		outcomes, err = decideAll(open, c.cfg.Run.Refuse, rewrite.NoCapacity), c.parts.Queue.LearnLimit(ctx, true, s.BatchID)
	case at.Refused, len(faulty) == s.Requests && s.Requests > 1:
		outcomes = decideAll(open, c.cfg.Run.Refuse, string(failure.EndpointRefused))
	case len(faulty) > 0:
		outcomes = decideAll(open, c.cfg.Run.Postpone, rewrite.Overflow)
		for i, job := range open {
			if faulty[job.ID] {
				outcomes[i] = c.failed(job, failure.InputInvalid, true)
			}
		}
	default:
		outcomes, err = c.divide(ctx, s.BatchID, open, failure.UpstreamInternal)
	}
	c.outcomes = append(c.outcomes, outcomes...)
	return err
}

// failOpen fails an attempt of the undecided jobs: the provider may have executed them.
func (c *collection) failOpen(class failure.Class) {
	for _, job := range c.open {
		c.outcomes = append(c.outcomes, c.cfg.Run.AfterFailure(job, string(class), false))
	}
	clear(c.open)
}

func (c *collection) flush(ctx context.Context) error {
	for part := range slices.Chunk(c.outcomes, flushSize) {
		if err := c.settle(ctx, c.claim, c.batchID, part...); err != nil {
			return err
		}
		c.decided += len(part)
	}
	return nil
}
