package provider

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/rewrite"
)

const (
	// submissionKey is the name of the key in a batch's metadata.
	submissionKey = "submission_key"
	// pageSize is the most batches the API lists at a time.
	pageSize = 100
	// maxPages bounds a search; an account has a few batches a day.
	maxPages = 200
)

// openBatches finds the endpoint and the adapter of a decision, if batches can
// be had there.
func (r *Rewriter) openBatches(to rewrite.RoutingDecision) (*llm.Endpoint, adapter, error) {
	endpoint, a, err := r.open(to)
	if err != nil {
		return nil, a, err
	}
	if a.path == "" || r.cfg.Providers[to.Provider].NoBatches {
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "adapter %s has no batches at provider %s: use execution mode async", to.AdapterKind, to.Provider)
	}
	return endpoint, a, nil
}

// Create makes a batch of an uploaded file, with key in its metadata. After an
// error the batch may exist all the same: only [Rewriter.Find] tells.
func (r *Rewriter) Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error) {
	endpoint, a, err := r.openBatches(to)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	request := openai.CreateBatchRequest{
		InputFileID: fileID, Endpoint: a.path, CompletionWindow: "24h", Metadata: map[string]any{submissionKey: key},
	}
	return one(ctx, endpoint, func(call context.Context, c *openai.Client) (openai.BatchResponse, error) {
		return c.CreateBatch(call, request)
	})
}

// Poll returns the batch. The error has class [failure.NotFound] if the provider
// knows it no more.
func (r *Rewriter) Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error) {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	return one(ctx, endpoint, func(call context.Context, c *openai.Client) (openai.BatchResponse, error) {
		return c.RetrieveBatch(call, batchID)
	})
}

// Cancel asks the provider to end the batch. Items that are done by then keep
// their results.
func (r *Rewriter) Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return err
	}
	_, err = one(ctx, endpoint, func(call context.Context, c *openai.Client) (openai.BatchResponse, error) {
		return c.CancelBatch(call, batchID)
	})
	return err
}

// one makes a call that is answered with one batch.
func one(ctx context.Context, e *llm.Endpoint, do func(context.Context, *openai.Client) (openai.BatchResponse, error)) (rewrite.ProviderBatch, error) {
	call, cancel := e.Bound(ctx)
	defer cancel()
	resp, err := do(call, e.OpenAI())
	if err != nil {
		return rewrite.ProviderBatch{}, e.Classify(ctx, err, resp.Header())
	}
	return batchOf(resp.Batch, resp.Header())
}

// Find returns the batches whose metadata hold key, oldest first. It pages
// through the provider's list, newest first, back to since by the provider's clock.
func (r *Rewriter) Find(ctx context.Context, to rewrite.RoutingDecision, key string, since time.Time) ([]rewrite.ProviderBatch, error) {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return nil, err
	}
	var found []rewrite.ProviderBatch
	var after *string
	for range maxPages {
		page, err := list(ctx, endpoint, after)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Data {
			if b.Metadata[submissionKey] != key {
				continue
			}
			batch, err := batchOf(b, page.Header())
			if err != nil {
				return nil, err
			}
			found = append(found, batch)
		}
		if !page.HasMore || len(page.Data) == 0 || older(page.Data, since) {
			slices.Reverse(found)
			return found, nil
		}
		after = &page.Data[len(page.Data)-1].ID
	}
	return nil, failure.Errorf(failure.UpstreamInternal, "find a batch: the provider's list does not end after %d pages", maxPages)
}

func list(ctx context.Context, e *llm.Endpoint, after *string) (openai.ListBatchResponse, error) {
	call, cancel := e.Bound(ctx)
	defer cancel()
	page, err := e.OpenAI().ListBatch(call, after, new(pageSize))
	if err != nil {
		return page, e.Classify(ctx, err, page.Header())
	}
	return page, nil
}

// older reports whether all that follows the page was made before since.
func older(page []openai.Batch, since time.Time) bool {
	return time.Unix(int64(page[len(page)-1].CreatedAt), 0).Before(since)
}

// errNoBatch says that an answer is no batch.
var errNoBatch = errors.New("provider's answer about a batch names none")

// batchOf reads a batch. What has no id is not one.
func batchOf(b openai.Batch, h http.Header) (rewrite.ProviderBatch, error) {
	if b.ID == "" {
		return rewrite.ProviderBatch{}, &failure.Error{Class: failure.UpstreamInternal, Err: errNoBatch, RequestID: h.Get("X-Request-Id")}
	}
	batch := rewrite.ProviderBatch{
		ID: b.ID, Status: statusOf(b.Status), CreatedAt: time.Unix(int64(b.CreatedAt), 0).UTC(),
		OutputFileID: deref(b.OutputFileID), ErrorFileID: deref(b.ErrorFileID),
	}
	if b.Errors != nil {
		for _, e := range b.Errors.Data {
			problem := rewrite.BatchProblem{Code: wordOf(e.Code), Capacity: slices.Contains(capacityCodes, e.Code)}
			if e.Line != nil {
				problem.Line = *e.Line
			}
			batch.Problems = append(batch.Problems, problem)
		}
	}
	return batch, nil
}

// statusOf maps the provider's status; one that is not known is not final.
func statusOf(s string) rewrite.BatchStatus {
	switch status := rewrite.BatchStatus(s); status {
	case rewrite.BatchValidating, rewrite.BatchCompleted, rewrite.BatchFailed, rewrite.BatchExpired, rewrite.BatchCancelled:
		return status
	}
	return rewrite.BatchInProgress
}

// capacityCodes are the problems of a batch that are no fault of its items.
var capacityCodes = []string{
	"token_limit_exceeded", "rate_limit_exceeded", "batch_limit_exceeded", "request_limit_exceeded",
	"insufficient_quota", "billing_hard_limit_reached", "server_error", "internal_error",
}

// word is a name that no text hides in.
var word = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// wordOf is the provider's code, if it is no more than a code.
func wordOf(code string) string {
	if word.MatchString(code) {
		return code
	}
	return "unknown"
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
