// Package activities holds the side effects of the complaint_rewrite queue: a run
// looks for pending work, claims jobs, has them rewritten one by one or in
// batches, and collects the batches. Sections cited as "queue N" are those of
// the contract complaint_rewrite_queue_processing_v1.
//
// All state is in Postgres. A run that dies is taken up by its next attempt, or
// by a later run, from what is there; Temporal's history holds ids and counts.
//
// [Working] has all activities. Read [Working.ExecuteJobs], which is the simplest
// run, then [Working.SubmitBatches] and [Working.CollectBatches].
package activities

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
)

// Queue is the task queue of the rewrite queue's workflows and activities. It is
// wire format.
const Queue = "criticizer-rewrite"

// Config says how a worker works. Each field has its own reason to be changed,
// and none needs another build (queue 13).
type Config struct {
	// Run is what one run may do. Required.
	Run rewrite.RunConfig
	// Limits bound a batch. Default [rewrite.ProviderLimits].
	Limits rewrite.BatchLimits
	// Concurrency is how many jobs of the async lane are executed at a time.
	// Default 4.
	Concurrency int
	// CallTimeout bounds one call for one job. Default 2 minutes.
	CallTimeout time.Duration
	// Lease is for how long a batch is one worker's to submit or collect; no
	// upload or creation takes longer. Default 10 minutes.
	Lease time.Duration
	// BatchTimeout is how long a batch may be at the provider before it is
	// canceled there; the clock of batch_submitted. Default 30 hours: the
	// provider's own 24 and a margin.
	BatchTimeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Limits = cmp.Or(c.Limits, rewrite.ProviderLimits)
	c.Concurrency = cmp.Or(c.Concurrency, 4)
	c.CallTimeout = cmp.Or(c.CallTimeout, 2*time.Minute)
	c.Lease = cmp.Or(c.Lease, 10*time.Minute)
	c.BatchTimeout = cmp.Or(c.BatchTimeout, 30*time.Hour)
	return c
}

// queue is the queue in Postgres. Each change is guarded on the claim, the lease
// or the batch by whose right it is made; what was lost is not changed.
type queue interface {
	jobs
	submissions
	ledger
}

// ledger records runs.
type ledger interface {
	BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	// Runtime is for how long the run has been going on.
	Runtime(ctx context.Context, runID string) (time.Duration, error)
	// FinishRun counts what the run did.
	FinishRun(ctx context.Context, runID string) (rewrite.Run, error)
}

// texts are the encrypted messages, preferences and results.
type texts interface {
	Get(ctx context.Context, ref review.ArtifactRef) ([]byte, error)
	Put(ctx context.Context, body []byte) (review.ArtifactRef, error)
}

// Parts is what a worker works with.
type Parts struct {
	Queue    queue
	Texts    texts
	Pipeline *redaction.Pipeline
	Rewriter rewriter
	Batches  batches
	Router   rewrite.Router
	// Name is how claims name this worker, such as a process and its host.
	Name string
}

// Working serves [Queue].
type Working struct {
	parts Parts
	lg    *slog.Logger
	cfg   Config
}

// New returns the activities. The error has class CONFIG_INVALID.
func New(lg *slog.Logger, parts Parts, cfg Config) (*Working, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Run.Validate(); err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "configure rewrite runs: %w", err)
	}
	return &Working{parts, lg, cfg}, nil
}

// BeginRun records a run and reports whether there is anything to do. If there
// is not, that is recorded and logged, and is no error (queue 5, 10).
func (w *Working) BeginRun(ctx context.Context, worker rewrite.Worker) (bool, error) {
	return w.begin(ctx, runOf(ctx), worker)
}

func (w *Working) begin(ctx context.Context, runID string, worker rewrite.Worker) (bool, error) {
	pending, err := w.pending(ctx, worker)
	if err != nil {
		return false, fmt.Errorf("begin run of %s: %w", worker, err)
	}
	if !pending {
		w.lg.InfoContext(ctx, "rewrite run skipped", "event", worker.Skip(), "run_id", runID)
		return false, w.parts.Queue.SkipRun(ctx, runID, worker, w.cfg.Run.MaxJobsPerRun)
	}
	return true, w.parts.Queue.BeginRun(ctx, runID, worker, w.cfg.Run.MaxJobsPerRun)
}

func (w *Working) pending(ctx context.Context, worker rewrite.Worker) (bool, error) {
	switch worker {
	case rewrite.AsyncLane:
		return w.parts.Queue.Pending(ctx, rewrite.Async, w.cfg.Run.ClaimTimeout())
	case rewrite.Submitter:
		pending, err := w.parts.Queue.Pending(ctx, rewrite.Batch, w.cfg.Run.ClaimTimeout())
		if pending || err != nil {
			return pending, err
		}
		return w.parts.Queue.PendingBatches(ctx, rewrite.Submitting)
	case rewrite.Collector:
		return w.parts.Queue.PendingBatches(ctx, rewrite.Submitted)
	}
	return false, failure.Errorf(failure.InputInvalid, "there is no worker %q: want one of %v", worker, rewrite.Workers())
}

// FinishRun counts what the run did, records and logs it (queue 10).
func (w *Working) FinishRun(ctx context.Context) (rewrite.Run, error) {
	return w.finish(ctx, runOf(ctx))
}

func (w *Working) finish(ctx context.Context, runID string) (rewrite.Run, error) {
	run, err := w.parts.Queue.FinishRun(ctx, runID)
	if err != nil {
		return run, err
	}
	w.lg.InfoContext(ctx, "rewrite run finished", "worker", run.Worker, "run_id", run.ID,
		"started_at", run.StartedAt, "finished_at", run.FinishedAt, "max_jobs_per_run", run.MaxJobsPerRun,
		"claimed_count", run.Claimed, "submitted_count", run.Submitted, "succeeded_count", run.Succeeded,
		"failed_count", run.Failed, "requeued_count", run.Requeued, "stale_count", run.Stale,
		"rate_limit_errors", run.RateLimited, "capacity_errors", run.Capacity, "per_model", run.PerModel)
	return run, nil
}

// runOf is the id of the run: that of the Temporal run, which attempts share.
func runOf(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// deadline is until when the run may begin new work (queue 6).
func (w *Working) deadline(ctx context.Context, runID string) (time.Time, error) {
	spent, err := w.parts.Queue.Runtime(ctx, runID)
	return time.Now().Add(w.cfg.Run.MaxRuntime() - spent), err
}
