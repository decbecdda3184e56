package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

// queue is [store.Queue], which documents its methods. Every write is guarded by the claim, the lease
// or the batch that gives the right to it; a write whose right was lost changes nothing.
type queue interface {
	BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	SkipRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	FinishRun(ctx context.Context, runID string) (rewrite.Run, error)
	Runtime(ctx context.Context, runID string) (time.Duration, error)
	DeleteExpired(ctx context.Context) (int, error)

	Pending(ctx context.Context, mode rewrite.ExecutionMode, claimTimeout time.Duration) (int, error)
	RecoverStale(ctx context.Context, runID string, timeout time.Duration) (int, error)
	Unrouted(ctx context.Context, limit int) ([]rewrite.Job, error)
	Route(ctx context.Context, decisions map[string]rewrite.RoutingDecision) error
	Providers(ctx context.Context, mode rewrite.ExecutionMode, limit int) ([]string, error)
	RecordRefusals(ctx context.Context, runID string, refusals []rewrite.Refusal) error
	Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int, refusing []string) ([]rewrite.Job, error)
	TakeOver(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error)
	Extend(ctx context.Context, c rewrite.Claim) error
	Begin(ctx context.Context, c rewrite.Claim, jobID string) (bool, error)
	Release(ctx context.Context, c rewrite.Claim, wait time.Duration) error
	Input(ctx context.Context, jobID string) (text, preferences string, err error)
	Newest(ctx context.Context, limit int) ([]rewrite.Job, error)
	Complete(ctx context.Context, by rewrite.Writer, results map[string]string) (int, error)
	Fail(ctx context.Context, by rewrite.Writer, outcomes []rewrite.Outcome) (int, error)

	PendingBatches(ctx context.Context, state rewrite.SubmissionState) (int, error)
	Enqueued(ctx context.Context, model rewrite.Model, limits *rewrite.BatchLimits) (int, error)
	LearnLimit(ctx context.Context, batchID string, full bool) error
	PartState(ctx context.Context, part string) (works, alike bool, err error)
	BeginSubmission(ctx context.Context, c rewrite.Claim, s rewrite.Submission, jobIDs []string, lease time.Duration) error
	BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error
	RecordCreateError(ctx context.Context, c rewrite.Claim, batchID, class string) error
	MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error
	DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error
	Installation(ctx context.Context) (id string, lookDue bool, err error)
	RecordLook(ctx context.Context) error
	BatchRoutes(ctx context.Context) ([]rewrite.RoutingDecision, error)
	KnowsBatch(ctx context.Context, at rewrite.ProviderBatch) (bool, error)
	RestoreBatch(ctx context.Context, c rewrite.Claim, provider string, at rewrite.ProviderBatch, jobIDs []string) (int, error)
	Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (rewrite.Submission, bool, error)
	RecordPoll(ctx context.Context, c rewrite.Claim, batchID string, status rewrite.BatchStatus, cancelAsked bool) error
	BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error)
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
