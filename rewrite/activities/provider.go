package activities

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/rewrite"
)

// A rewriter has models rewrite single jobs, and judges what models wrote.
//
// Errors have a class where they are born. ADAPTER_UNSUPPORTED: there is no
// adapter of that kind, or it may not be used with the decision's base URL.
// RATE_LIMITED and SERVER_BUSY are counted as rate limits, QUOTA_EXHAUSTED as
// capacity. No error holds what the provider or the model said.
type rewriter interface {
	// Rewrite asks the model once: a failed call is an attempt of the job, and
	// is not repeated by anybody but the queue (queue 8.1). It never goes to
	// another provider, model or URL than the decision says (queue 8.2). The
	// answer has not been judged.
	Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Answer, error)
	// Judge returns an error of class SCHEMA_INVALID unless answer is a rewrite
	// of item: in the right language, of sensible length, with no placeholder
	// that item does not have, and none left open.
	Judge(item rewrite.Item, answer rewrite.Answer) error
}

// batches is a provider's batch API. Each method is one call, or pages of one;
// none is retried inside.
type batches interface {
	// Weigh tells what item takes up in a batch. The error is of class
	// ADAPTER_UNSUPPORTED if the adapter knows no batches.
	Weigh(to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Weight, error)
	// Upload stores the items' input file, one line for each in their order, and
	// returns the file's id.
	Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (fileID string, err error)
	// Create makes a batch of an uploaded file, with key as submission_key in
	// the batch's metadata. After an error the batch may exist: only Find tells.
	Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error)
	// Find returns the batches whose submission_key is key, oldest first. It
	// pages through the provider's list back to since.
	Find(ctx context.Context, to rewrite.RoutingDecision, key string, since time.Time) ([]rewrite.ProviderBatch, error)
	// Poll returns the batch. The error is of class NOT_FOUND if the provider
	// knows it no more.
	Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error)
	// Results calls each for every line of an output or error file that can be
	// read, in the file's order, and ends at the first error of each. A line
	// that cannot be read is left out: its item is then missing. Lines may name
	// items twice, or items that are not of the batch.
	Results(ctx context.Context, to rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error
	// Delete removes a file at the provider; one that is gone is no error.
	Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error
	// Cancel asks the provider to end the batch; some items may have results.
	Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error
}
