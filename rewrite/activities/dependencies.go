package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

// queue is the queue in Postgres. Every write is guarded by the claim, the lease or
// the batch that gives the right to it; a write whose right was lost changes nothing.
type queue interface {
	// BeginRun, SkipRun and FinishRun record a run; FinishRun counts its transitions.
	BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	FinishRun(ctx context.Context, runID string) (rewrite.Run, error)
	// DeleteExpired deletes expired messages, preferences and results.
	DeleteExpired(ctx context.Context) (int, error)
	// Runtime returns the time since the run began.
	Runtime(ctx context.Context, runID string) (time.Duration, error)

	// Pending counts the jobs that a run of this mode could claim, route or recover,
	// PendingBatches the batches in the given state that have no lease.
	Pending(ctx context.Context, mode rewrite.ExecutionMode, claimTimeout time.Duration) (int, error)
	PendingBatches(ctx context.Context, state rewrite.SubmissionState) (int, error)

	// RecoverStale ends claims older than timeout (rewrite 7.2).
	RecoverStale(ctx context.Context, runID string, timeout time.Duration) (int, error)
	// Unrouted returns jobs without a routing decision; Route sets decisions by job id.
	Unrouted(ctx context.Context, limit int) ([]rewrite.Job, error)
	Route(ctx context.Context, decisions map[string]rewrite.RoutingDecision) error
	// Providers returns the providers of the oldest eligible jobs; RecordRefusals records those
	// that refuse calls.
	Providers(ctx context.Context, mode rewrite.ExecutionMode, limit int) ([]string, error)
	RecordRefusals(ctx context.Context, runID string, refusals []rewrite.Refusal) error
	// Claim claims eligible jobs of other providers than the refusing ones, oldest first (rewrite
	// 7.1). TakeOver takes over the claims of the run's earlier attempts.
	Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int, refusing []string) ([]rewrite.Job, error)
	TakeOver(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error)
	// Extend renews a claim.
	Extend(ctx context.Context, c rewrite.Claim) error
	// Begin records that the request to the provider is about to begin; false if the
	// claim was lost.
	Begin(ctx context.Context, c rewrite.Claim, jobID string) (bool, error)
	// Release queues claimed jobs that have neither begun nor joined a batch.
	Release(ctx context.Context, c rewrite.Claim, wait time.Duration) error
	// Input returns the references of a job's texts.
	Input(ctx context.Context, jobID string) (text, preferences string, err error)
	// Newest returns the newest jobs, of any status.
	Newest(ctx context.Context, limit int) ([]rewrite.Job, error)
	// Complete and Fail write results and outcomes, and return how many were written.
	Complete(ctx context.Context, by rewrite.Writer, results map[string]string) (int, error)
	Fail(ctx context.Context, by rewrite.Writer, outcomes []rewrite.Outcome) (int, error)

	// Enqueued returns the tokens of a model's batches at its provider, and lowers limits to those
	// that were learned within a day. LearnLimit records that the provider refused a batch for its
	// size or, if full is set, for what is enqueued.
	Enqueued(ctx context.Context, model rewrite.Model, limits *rewrite.BatchLimits) (int, error)
	LearnLimit(ctx context.Context, batchID string, full bool) error
	// PartState reports, of a rejected part of a batch, whether the provider executed another job
	// of the batch, and whether it rejected the other half as well.
	PartState(ctx context.Context, part string) (works, alike bool, err error)
	// BeginSubmission records the submission key and binds the jobs to it. BeginCreation
	// records that the provider may have the batch from now on. Then RecordCreateError or
	// MarkSubmitted records the result.
	BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error
	BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error
	RecordCreateError(ctx context.Context, c rewrite.Claim, batchID, class string) error
	MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error
	// DropSubmission ends a batch that the provider refused and keeps the claim of its jobs.
	DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error
	// Installation says whether a search for batches without a row is due; RecordLook records one.
	Installation(ctx context.Context) (id string, lookDue bool, err error)
	RecordLook(ctx context.Context) error
	// BatchRoutes returns a decision per provider of batches. KnowsBatch reports whether a batch of
	// the provider has a row; RestoreBatch makes one, with those of the jobs that are queued.
	BatchRoutes(ctx context.Context) ([]rewrite.RoutingDecision, error)
	KnowsBatch(ctx context.Context, at rewrite.ProviderBatch) (bool, error)
	RestoreBatch(ctx context.Context, c rewrite.Claim, provider string, at rewrite.ProviderBatch, jobIDs []string) (int, error)
	// Lease leases a batch in the given state, each batch once in a run. RecordPoll ends
	// the lease on a batch that the provider has not finished, or whose files it does not
	// return.
	Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (rewrite.Submission, bool, error)
	RecordPoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error
	// BatchJobs returns all jobs of a batch in the order of its input file.
	BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error)
	// EndBatch closes a batch whose jobs are all decided.
	EndBatch(ctx context.Context, batchID string, state rewrite.SubmissionState, status rewrite.BatchStatus) error
}

// messages are the encrypted messages and preferences.
type messages interface {
	Get(ctx context.Context, of artifact.Owner, ref artifact.Ref) ([]byte, error)
}

// results are the encrypted rewrites.
type results interface {
	Put(ctx context.Context, of artifact.Owner, body []byte) (artifact.Ref, error)
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
	Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Answer, error)
	// Check returns an error of class SCHEMA_INVALID unless answer is a rewrite of item.
	Check(item rewrite.Item, answer rewrite.Answer) error

	// Weigh returns an error of class ADAPTER_UNSUPPORTED if the adapter has no batches.
	Weigh(to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Weight, error)
	Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (fileID string, err error)
	// FileStatus returns the status of an uploaded file, empty if the provider names none.
	FileStatus(ctx context.Context, to rewrite.RoutingDecision, fileID string) (string, error)
	// After an error of Create the batch may exist: only Find can tell.
	Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error)
	Find(ctx context.Context, to rewrite.RoutingDecision, key, fileID string, since time.Time) ([]rewrite.ProviderBatch, error)
	// Ours returns the batches of this installation.
	Ours(ctx context.Context, to rewrite.RoutingDecision, since time.Time) ([]rewrite.ProviderBatch, error)
	// Poll returns an error of class NOT_FOUND if the provider has deleted the batch.
	Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error)
	// Results may return lines that name an item twice, items of other batches, or no item.
	Results(ctx context.Context, to rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error
	Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error
	Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error
}
