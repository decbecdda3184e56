package activities

import (
	"context"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
)

// flushSize is how many outcomes are written at a time.
const flushSize = 200

// A result is what the files of a batch have about one job.
type result struct {
	job   rewrite.Job
	lines int
	// ref is the reference of the stored answer, class the failure of a line. A result counts more
	// than an error. Two different results are both refused: which of them belongs to the job is not known.
	ref      string
	class    failure.Class
	conflict bool
}

// A collection holds the results of one batch while its files are read. Nothing is written before
// all lines are read.
type collection struct {
	*Activities
	batch    store.Submission
	results  []*result // in the order of the input file
	byJob    map[string]*result
	unknown  int  // lines of no job
	works    bool // the model executed one of the jobs
	outcomes []rewrite.Outcome
}

// conclude decides about the jobs of a batch that has ended. While a file cannot be read,
// or the files may lack results, the jobs without a result stay open. After readTimeout they
// fail with class missing.
func (a *Activities) conclude(ctx context.Context, claim rewrite.Claim, s store.Submission, at rewrite.ProviderBatch, missing failure.Class) (int, error) {
	jobs, err := a.parts.Queue.BatchJobs(ctx, s.BatchID)
	if err != nil {
		return 0, err
	}
	c := &collection{Activities: a, batch: s, byJob: map[string]*result{}}
	for _, job := range jobs {
		c.results = append(c.results, &result{job: job})
		c.byJob[job.ID] = c.results[len(c.results)-1]
	}
	var unread error   // of the provider
	truncated := false // a later line of the output may contradict an earlier one
	for _, file := range []string{at.OutputFileID, at.ErrorFileID} {
		if file == "" {
			continue
		}
		failed := a.parts.Provider.Results(ctx, s.RoutingDecision, file, func(line rewrite.Line) error {
			err = c.read(ctx, line)
			return err
		})
		if err != nil {
			return 0, err
		}
		if failed != nil {
			unread, missing, truncated = failed, failure.ClassOf(failed), truncated || file == at.OutputFileID
		}
	}
	mayWait := s.FinalAge < readTimeout
	var open []rewrite.Job // without a decision
	seen, repeated := 0, 0
	for _, r := range c.results {
		if r.lines > 0 {
			seen, repeated = seen+1, repeated+r.lines-1
		}
		switch {
		case r.job.Status != rewrite.BatchSubmitted:
		case truncated && mayWait || r.ref == "" && r.class == "":
			open = append(open, r.job)
		case r.ref != "" && !r.conflict:
			c.outcomes = append(c.outcomes, r.job.Done(r.ref))
		default:
			c.outcomes = append(c.outcomes, a.failed(r.job, r.class, c.works))
		}
	}
	if unread == nil && at.Status == rewrite.BatchFailed && len(open) > 0 {
		if err := c.reject(ctx, at, open); err != nil {
			return 0, err
		}
		open = nil
	}
	// The files may lack results that the provider has: they have fewer lines than it counts, lines of
	// no job, or none although it has completed the batch.
	lacks := seen < at.Lines || c.unknown > 0 || seen == 0 && at.Status == rewrite.BatchCompleted
	waits := mayWait && len(open) > 0 && (unread != nil || lacks)
	if unread != nil || c.unknown+repeated+len(open) > 0 {
		a.lg.WarnContext(ctx, "files of a batch do not match its jobs", "batch_id", s.BatchID, "run_id", claim.RunID, "provider_status", at.Status,
			"unknown_lines", c.unknown, "repeated_lines", repeated, "missing_lines", len(open), "read_lines", seen, "provider_count", at.Lines,
			"error_class", missing, "waits", waits)
	}
	if !waits { // the provider may have executed them
		for _, job := range open {
			c.outcomes = append(c.outcomes, a.cfg.Run.AfterFailure(job, string(missing), false))
		}
	}
	for part := range slices.Chunk(c.outcomes, flushSize) {
		if err := a.settle(ctx, claim, s.BatchID, part...); err != nil {
			return 0, err
		}
	}
	if waits {
		return len(c.outcomes), a.recordPoll(ctx, claim, s, at.Status, s.CancelAskedAt != nil)
	}
	unstored := unread != nil || c.unknown > 0 || len(open) > 0 && at.Status == rewrite.BatchCompleted
	return len(c.outcomes), a.endBatch(ctx, s, at, unstored)
}

// read reads one line. Its error is neither the job's nor the provider's.
func (c *collection) read(ctx context.Context, line rewrite.Line) error {
	r := c.byJob[line.JobID]
	if r == nil {
		c.unknown++
		return nil
	}
	r.lines++
	if r.job.Status != rewrite.BatchSubmitted {
		return nil
	}
	ref, err := "", line.Err
	if err == nil {
		item, message, failed := c.item(ctx, r.job)
		if err = failed; err == nil {
			ref, err = c.accept(ctx, item, message, line.Answer)
		}
		if err != nil && ownFault(err) {
			return err
		}
	}
	switch {
	case err != nil:
		r.class = failure.ClassOf(err)
		c.works = c.works || executed(r.class)
	case r.ref != "" && r.ref != ref:
		r.conflict, r.class = true, failure.SchemaInvalid
	default:
		r.ref, c.works = ref, true
	}
	return nil
}

// reject decides about the open jobs of a batch that was rejected as a whole. Jobs of faulty
// lines fail permanently, unless every line is called faulty; the others are queued. If the
// provider has no room, or refuses the model or the account, the jobs are queued and no attempt is
// counted. Without a reason the batch is divided. If jobs are missing, because a crashed worker has
// queued them again, the numbers of the lines are those of other jobs.
func (c *collection) reject(ctx context.Context, at rewrite.ProviderBatch, open []rewrite.Job) (err error) {
	lines, faulty := map[int]bool{}, map[string]bool{} // faulty has jobs
	for _, line := range at.FaultyLines {
		if line > c.batch.Requests {
			continue
		}
		lines[line] = true
		if len(c.results) == c.batch.Requests {
			faulty[c.results[line-1].job.ID] = true
		}
	}
	var outcomes []rewrite.Outcome
	switch {
	case at.Full:
		outcomes, err = decideAll(open, c.cfg.Run.Refuse, rewrite.NoCapacity), c.parts.Queue.LearnLimit(ctx, true, c.batch.BatchID)
	case at.Refused, len(lines) == c.batch.Requests && c.batch.Requests > 1:
		outcomes = decideAll(open, c.cfg.Run.Refuse, string(failure.EndpointRefused))
	case len(lines) > 0:
		outcomes = decideAll(open, c.cfg.Run.Postpone, rewrite.Overflow)
		for i, job := range open {
			if faulty[job.ID] {
				outcomes[i] = c.failed(job, failure.InputInvalid, true)
			}
		}
	default:
		outcomes, err = c.divide(ctx, c.batch.BatchID, open, failure.UpstreamInternal)
	}
	c.outcomes = append(c.outcomes, outcomes...)
	return err
}
