package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/store/artifact"
)

// queue is the part of [store.Queue] that runs need. Every write is guarded by the claim, the lease
// or the batch that gives the right to it; a write whose right was lost changes nothing.
type queue interface {
	BeginRun(ctx context.Context, runID string, worker rewrite.Worker, maxJobs int) error
	SkipRun(ctx context.Context, run db.SkipRunParams) error
	FinishRun(ctx context.Context, runID string) (store.Run, error)
	Runtime(ctx context.Context, runID string) (time.Duration, error)
	RecordRefusals(ctx context.Context, refusals []rewrite.Refusal, runID string) error
	DeleteExpired(ctx context.Context) (int64, error)

	PendingJobs(ctx context.Context, mode string, claimTimeout time.Duration) (int, error)
	RecoverStaleClaims(ctx context.Context, runID string, claimTimeout time.Duration) (int64, error)
	RouteJobs(ctx context.Context, decision json.RawMessage, maxJobs int) error
	DueProviders(ctx context.Context, mode string, maxJobs int) ([]string, error)
	Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int, refusing []string) ([]rewrite.Job, error)
	TakeOver(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error)
	ExtendClaims(ctx context.Context, claimToken string) error
	BeginJob(ctx context.Context, jobID, claimToken string) (int64, error)
	Release(ctx context.Context, c rewrite.Claim, wait time.Duration) error
	Input(ctx context.Context, jobID string) (db.InputRow, error)
	NewestMessages(ctx context.Context, limit int) ([]string, error)
	Complete(ctx context.Context, by rewrite.Writer, results map[string]string) (int64, error)
	Fail(ctx context.Context, by rewrite.Writer, outcomes []rewrite.Outcome) (int64, error)

	PendingBatches(ctx context.Context, state rewrite.SubmissionState) (int, error)
	Enqueued(ctx context.Context, arg db.EnqueuedParams) (db.EnqueuedRow, error)
	LearnLimit(ctx context.Context, full bool, batchID string) error
	PartState(ctx context.Context, part string) (db.PartStateRow, error)
	BeginSubmission(ctx context.Context, c rewrite.Claim, b store.Batch, jobIDs []string, lease time.Duration) error
	BeginCreation(ctx context.Context, c rewrite.Claim, batchID, fileID string, lease time.Duration) error
	RecordCreateError(ctx context.Context, class, batchID, leaseToken string) error
	MarkSubmitted(ctx context.Context, runID, batchID string, at rewrite.ProviderBatch) error
	DropSubmission(ctx context.Context, c rewrite.Claim, batchID string) error
	Lease(ctx context.Context, c rewrite.Claim, state rewrite.SubmissionState, lease time.Duration) (store.Submission, bool, error)
	RecordPoll(ctx context.Context, arg db.RecordPollParams) error
	BatchJobs(ctx context.Context, batchID string) ([]rewrite.Job, error)
	EndBatch(ctx context.Context, state rewrite.SubmissionState, status, batchID string) error

	Installation(ctx context.Context) (db.InstallationRow, error)
	RecordLook(ctx context.Context) error
	BatchRoutes(ctx context.Context) ([]rewrite.RoutingDecision, error)
	KnowsBatch(ctx context.Context, key, providerID string) (bool, error)
	RestoreBatch(ctx context.Context, c rewrite.Claim, provider string, at rewrite.ProviderBatch, jobIDs []string) (int, error)
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

	// Weigh returns the tokens of an item in a batch, estimated. The error has class ADAPTER_UNSUPPORTED
	// if the adapter has no batches.
	Weigh(to rewrite.RoutingDecision, item rewrite.Item) (int, error)
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
