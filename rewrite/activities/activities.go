// Package activities holds the side effects of the complaint_rewrite queue: a run
// searches for pending work, claims jobs, has models rewrite them one by one or in
// batches, and collects the batches.
//
// All state is in Postgres. If a run crashes, its next attempt or a later run continues
// from there; Temporal's history holds ids and counts.
//
// Read [Activities.ExecuteJobs] first, the simplest run, then claim.go, then
// [Activities.SubmitBatches], resolve.go and [Activities.CollectBatches].
package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/store/artifact"
)

// Queue is the task queue of the rewrite queue's workflows and activities. It is
// wire format.
const Queue = "complaint-rewrite"

// Config configures a worker: every field is required, and can be changed without a new build
// (rewrite 13).
type Config struct {
	// Run limits one run, Limits one batch. [rewrite.RunConfig.Validate] accepts Run.
	Run    rewrite.RunConfig
	Limits rewrite.BatchLimits
	// Concurrency is the number of concurrent calls of the async lane.
	Concurrency int
	// CallTimeout bounds one call for one job.
	CallTimeout time.Duration
}

// batchTimeout is the age at which a batch is canceled at the provider, whose own limit is 24 hours.
const batchTimeout = 30 * time.Hour

// lease is how long one worker may submit or collect a batch without renewing its lease: the calls of
// an upload and a creation.
func (c Config) lease() time.Duration { return 5 * c.CallTimeout }

// Parts are the dependencies of a worker.
type Parts struct {
	Queue    *store.Queue
	Messages messages
	Results  *artifact.Store // the encrypted rewrites
	Pipeline *redaction.Pipeline
	Provider provider
	// Standard is the decision for jobs that have none.
	Standard rewrite.RoutingDecision
	// Name identifies this worker in claims, such as a process and its host.
	Name string
}

// messages are the encrypted messages and preferences.
type messages interface {
	Get(ctx context.Context, of artifact.Owner, ref artifact.Ref) ([]byte, error)
}

// A provider has models rewrite jobs, one by one or in batches; package rewrite/provider
// documents its methods.
//
// Every method makes one call, or the calls of one list, and retries nothing: only the
// queue retries (rewrite 8.1). It uses no other provider, model or URL than the decision's
// (rewrite 8.2). Errors have a class and quote neither the provider nor the model.
// RATE_LIMITED and SERVER_BUSY are counted as rate limits, QUOTA_EXHAUSTED as capacity.
type provider interface {
	// Models is a call that costs nothing.
	Models(ctx context.Context, provider string) ([]string, error)
	Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (string, error)
	// Check returns an error of class SCHEMA_INVALID unless answer is a rewrite of item.
	Check(item rewrite.Item, answer string) error

	// Weigh returns the tokens of an item in a batch, estimated. The error has class ADAPTER_UNSUPPORTED
	// if the adapter has no batches.
	Weigh(to rewrite.RoutingDecision, item rewrite.Item) (int, error)
	Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (fileID string, err error)
	// FileStatus returns the status of an uploaded file, empty if the provider names none.
	FileStatus(ctx context.Context, to rewrite.RoutingDecision, fileID string) (string, error)
	// After an error of Create the batch may exist: only Batches can tell.
	Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error)
	// Batches returns the batches of the account, newest first.
	Batches(ctx context.Context, to rewrite.RoutingDecision, since time.Time) ([]rewrite.ProviderBatch, error)
	// Poll returns an error of class NOT_FOUND if the provider has deleted the batch.
	Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error)
	// Results may return lines that name an item twice, items of other batches, or no item.
	Results(ctx context.Context, to rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error
	Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error
	Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error
}

// Activities serves [Queue].
type Activities struct {
	parts Parts
	lg    *slog.Logger
	cfg   Config
	pause time.Duration // before a file that is not processed is looked at again
	// runOf returns the ID of the Temporal run, which all attempts of an activity share.
	runOf func(context.Context) string
}

// New returns the activities.
func New(lg *slog.Logger, parts Parts, cfg Config) *Activities {
	return &Activities{parts, lg, cfg, time.Second, func(ctx context.Context) string {
		return activity.GetInfo(ctx).WorkflowExecution.RunID
	}}
}

// BeginRun counts the pending work of a run, records it, and reports whether there is any. A run without
// pending work is recorded and logged, and is not an error (rewrite 5, 10).
func (a *Activities) BeginRun(ctx context.Context, worker rewrite.Worker) (bool, error) {
	runID := a.runOf(ctx)
	if worker == rewrite.Collector { // each of its runs deletes expired texts; an error does not end the run (security 9.4.5)
		switch n, err := a.parts.Queue.DeleteExpired(ctx); {
		case err != nil:
			a.lg.ErrorContext(ctx, "deletion of expired texts failed", "run_id", runID, "error_class", failure.ClassOf(err))
		case n > 0:
			a.lg.InfoContext(ctx, "expired texts deleted", "run_id", runID, "texts", n)
		}
	}
	pending, err := a.pending(ctx, worker)
	if err != nil {
		return false, fmt.Errorf("begin run of %s: %w", worker, err)
	}
	if pending == 0 {
		skipped := db.SkipRunParams{RunID: runID, Worker: worker, MaxJobsPerRun: a.cfg.Run.MaxJobsPerRun, Event: worker.Skip()}
		a.lg.InfoContext(ctx, "rewrite run skipped", "event", skipped.Event, "run_id", runID)
		return false, a.parts.Queue.SkipRun(ctx, skipped)
	}
	return true, a.parts.Queue.BeginRun(ctx, runID, worker, a.cfg.Run.MaxJobsPerRun)
}

func (a *Activities) pending(ctx context.Context, worker rewrite.Worker) (int, error) {
	switch worker {
	case rewrite.AsyncLane:
		return a.parts.Queue.PendingJobs(ctx, string(rewrite.Async), a.cfg.Run.ClaimTimeout())
	case rewrite.Submitter:
		jobs, err := a.parts.Queue.PendingJobs(ctx, string(rewrite.Batch), a.cfg.Run.ClaimTimeout())
		if err != nil {
			return 0, err
		}
		batches, err := a.parts.Queue.PendingBatches(ctx, rewrite.Submitting)
		return jobs + batches, err
	case rewrite.Collector:
		installation, err := a.parts.Queue.Installation(ctx)
		if err != nil || installation.LookDue { // a search for unknown batches is work
			return 1, err
		}
		return a.parts.Queue.PendingBatches(ctx, rewrite.Submitted)
	}
	return 0, failure.Errorf(failure.InputInvalid, "unknown worker %q: want one of %v", worker, rewrite.Workers())
}

// FinishRun counts the transitions of the run, records and logs them (rewrite 10).
func (a *Activities) FinishRun(ctx context.Context) (store.Run, error) {
	runID := a.runOf(ctx)
	run, err := a.parts.Queue.FinishRun(ctx, runID)
	if failure.ClassOf(err) == failure.NotFound { // a reset after its work gave the run another ID
		return store.Run{RunID: runID}, nil
	}
	if err != nil {
		return run, err
	}
	a.lg.InfoContext(ctx, "rewrite run finished", "worker", run.Worker, "run_id", run.RunID,
		"started_at", run.StartedAt, "finished_at", run.FinishedAt, "max_jobs_per_run", run.MaxJobsPerRun,
		"claimed_count", run.ClaimedCount, "submitted_count", run.SubmittedCount, "succeeded_count", run.SucceededCount,
		"failed_count", run.FailedCount, "requeued_count", run.RequeuedCount, "stale_count", run.StaleCount,
		"rate_limit_errors", run.RateLimitErrors, "capacity_errors", run.CapacityErrors, "refusals", run.Refusals, "per_model", run.PerModel)
	return run, nil
}

// deadline returns when the run must stop beginning new work (rewrite 6).
func (a *Activities) deadline(ctx context.Context, runID string, worker rewrite.Worker) (time.Time, error) {
	spent, err := a.parts.Queue.Runtime(ctx, runID)
	if failure.ClassOf(err) == failure.NotFound { // a reset gave the run another ID
		err = a.parts.Queue.BeginRun(ctx, runID, worker, a.cfg.Run.MaxJobsPerRun)
	}
	return time.Now().Add(a.cfg.Run.MaxRuntime() - spent), err
}
