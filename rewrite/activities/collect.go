package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// CollectBatches collects the results of batches that have ended. Each job gets a
// status of its own (rewrite 9).
func (a *Activities) CollectBatches(ctx context.Context) error {
	runID := a.runOf(ctx)
	deadline, err := a.deadline(ctx, runID, rewrite.Collector)
	if err != nil {
		return err
	}
	claim := rewrite.NewClaim(runID, a.parts.Name)
	if err := a.restore(ctx, claim); err != nil {
		return fmt.Errorf("search for unknown batches: %w", err)
	}
	// The limit of results exceeds the number of jobs that are submitted between two runs. A batch has at
	// most as many jobs as a run claims: no batch exceeds the room.
	for room := 4 * a.cfg.Run.MaxJobsPerRun; room >= a.cfg.Run.MaxJobsPerRun && time.Now().Before(deadline) && ctx.Err() == nil; {
		s, ok, err := a.parts.Queue.Lease(ctx, claim, rewrite.Submitted, a.cfg.lease())
		if err != nil || !ok {
			return err
		}
		decided, err := a.collectOne(ctx, claim, s)
		if err != nil {
			return fmt.Errorf("collect batch %s: %w", s.BatchID, err)
		}
		room -= decided
	}
	return nil
}

const (
	// cancelTimeout is how long a provider may take to cancel a batch, and how long a batch
	// that cannot be polled stays open after its time limit.
	cancelTimeout = 2 * time.Hour
	// readTimeout is how long the results of an ended batch are asked for, which are paid.
	readTimeout = 6 * time.Hour
)

// collectOne polls one batch and returns how many of its jobs were decided. No error of
// the provider ends a batch before its time: a single 404 may be a mistake.
func (a *Activities) collectOne(ctx context.Context, claim rewrite.Claim, s store.Submission) (int, error) {
	if s.State == rewrite.Abandoned { // by an operator, or while it could not be canceled
		return 0, a.recordPoll(ctx, claim, s, s.ProviderStatus, a.cancel(ctx, claim, s))
	}
	at, err := a.parts.Provider.Poll(ctx, s.RoutingDecision, s.ProviderBatchID)
	missing := failure.UpstreamUnavailable
	if err != nil {
		missing, at = failure.ClassOf(err), rewrite.ProviderBatch{Status: s.ProviderStatus}
		a.lg.WarnContext(ctx, "poll of a batch failed", "batch_id", s.BatchID, "run_id", claim.RunID, "error_class", missing)
	} else if at.Status.Final() {
		return a.conclude(ctx, claim, s, at, failure.UpstreamInternal)
	}
	if s.Age > batchTimeout && s.CancelAskedAt == nil && a.cancel(ctx, claim, s) {
		s.CancelAskedAt = new(time.Now())
	}
	if s.Age > batchTimeout+cancelTimeout {
		s.FinalAge = readTimeout // there is nothing to wait for
		return a.conclude(ctx, claim, s, at, missing)
	}
	return 0, a.recordPoll(ctx, claim, s, at.Status, s.CancelAskedAt != nil)
}

// cancel asks the provider to cancel a batch and reports whether to stop asking.
func (a *Activities) cancel(ctx context.Context, claim rewrite.Claim, s store.Submission) bool {
	err := a.parts.Provider.Cancel(ctx, s.RoutingDecision, s.ProviderBatchID)
	if err != nil {
		a.lg.WarnContext(ctx, "cancellation of a batch failed", "batch_id", s.BatchID, "run_id", claim.RunID, "error_class", failure.ClassOf(err))
	}
	return err == nil || failure.ClassOf(err) == failure.WriteConflict // it has ended
}

// recordPoll records the provider's status and ends the lease on a batch that the provider has not
// finished, or whose results could not be read yet.
func (a *Activities) recordPoll(ctx context.Context, claim rewrite.Claim, s store.Submission, status rewrite.BatchStatus, cancelAsked bool) error {
	return a.parts.Queue.RecordPoll(ctx, db.RecordPollParams{
		ProviderStatus: status, Final: status.Final(), CancelAsked: cancelAsked, BatchID: s.BatchID, LeaseToken: claim.Token,
	})
}

// endBatch closes a batch and deletes its files at the provider, unless they may have a
// result that is not stored.
func (a *Activities) endBatch(ctx context.Context, s store.Submission, at rewrite.ProviderBatch, unstored bool) error {
	state := rewrite.Collected
	if !at.Status.Final() {
		state = rewrite.Abandoned
	}
	if err := a.parts.Queue.EndBatch(ctx, state, string(at.Status), s.BatchID); err != nil {
		return err
	}
	a.lg.InfoContext(ctx, "batch collected", "batch_id", s.BatchID, "state", state, "provider_status", at.Status)
	if !unstored {
		a.deleteFiles(ctx, s, at)
	}
	return nil
}

// deleteFiles deletes a batch's files at the provider: they contain messages. A file
// that cannot be deleted expires there.
func (a *Activities) deleteFiles(ctx context.Context, s store.Submission, at rewrite.ProviderBatch) {
	for _, file := range []string{s.InputFileID, at.OutputFileID, at.ErrorFileID} {
		if file == "" {
			continue
		}
		if err := a.parts.Provider.Delete(ctx, s.RoutingDecision, file); err != nil {
			a.lg.WarnContext(ctx, "deletion of a batch's file failed", "batch_id", s.BatchID, "error_class", failure.ClassOf(err))
		}
	}
}

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
