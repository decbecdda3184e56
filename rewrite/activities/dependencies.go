package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

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
