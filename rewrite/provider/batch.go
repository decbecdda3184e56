package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/rewrite"
)

const (
	submissionKey = "submission_key" // name of the key in a batch's metadata
	pageSize      = 100              // of the API's list of batches
	maxPages      = 200              // of a search; an account has a few batches a day
)

// openBatches returns the endpoint and the adapter of a decision, if it has batches.
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

// Create creates a batch of an uploaded file with key in its metadata. After an error
// the batch may exist: use [Rewriter.Find].
func (r *Rewriter) Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error) {
	_, a, err := r.openBatches(to)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	return r.batchCall(ctx, to, func(b openai.Batch) bool { return b.InputFileID == fileID || b.InputFileID == "" }, http.MethodPost, "", openai.CreateBatchRequest{
		InputFileID: fileID, Endpoint: a.path, CompletionWindow: "24h", Metadata: map[string]any{submissionKey: key},
	})
}

// Poll returns the batch. The error has class [failure.NotFound] if the provider has
// deleted it.
func (r *Rewriter) Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error) {
	return r.batchCall(ctx, to, is(batchID), http.MethodGet, "/"+url.PathEscape(batchID), nil)
}

// Cancel asks the provider to end the batch. Finished items keep their results.
func (r *Rewriter) Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error {
	_, err := r.batchCall(ctx, to, is(batchID), http.MethodPost, "/"+url.PathEscape(batchID)+"/cancel", nil)
	return err
}

func is(batchID string) func(openai.Batch) bool {
	return func(b openai.Batch) bool { return b.ID == batchID }
}

// batchCall makes a call whose response is one batch. A response about a batch that is not
// ours is an error: its files belong to other jobs.
func (r *Rewriter) batchCall(ctx context.Context, to rewrite.RoutingDecision, ours func(openai.Batch) bool, method, path string, in any) (rewrite.ProviderBatch, error) {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	var batch openai.Batch
	h, err := endpoint.Call(ctx, method, "/batches"+path, in, &batch)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	if !ours(batch) {
		batch.ID = ""
	}
	return batchOf(batch, h)
}

// Find returns the batches with key in their metadata or of the input file, oldest first.
// It pages through the provider's list, newest first, back to since by the provider's clock.
func (r *Rewriter) Find(ctx context.Context, to rewrite.RoutingDecision, key, fileID string, since time.Time) ([]rewrite.ProviderBatch, error) {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return nil, err
	}
	var found []rewrite.ProviderBatch
	path := "/batches?limit=" + strconv.Itoa(pageSize)
	for range maxPages {
		var page struct {
			Data    []openai.Batch `json:"data"`
			HasMore bool           `json:"has_more"`
		}
		h, err := endpoint.Call(ctx, http.MethodGet, path, nil, &page)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Data {
			if b.Metadata[submissionKey] != key && b.InputFileID != fileID {
				continue
			}
			batch, err := batchOf(b, h)
			if err != nil {
				return nil, err
			}
			found = append(found, batch)
		}
		if !page.HasMore || len(page.Data) == 0 || createdAt(page.Data[len(page.Data)-1]).Before(since) {
			slices.Reverse(found)
			return found, nil
		}
		path = fmt.Sprintf("/batches?limit=%d&after=%s", pageSize, url.QueryEscape(page.Data[len(page.Data)-1].ID))
	}
	return nil, failure.Errorf(failure.UpstreamInternal, "find a batch: the provider's list has more than %d pages", maxPages)
}

func createdAt(b openai.Batch) time.Time { return time.Unix(int64(b.CreatedAt), 0).UTC() }

// batchOf converts a batch of the API. A batch without our id is an error.
func batchOf(b openai.Batch, h http.Header) (rewrite.ProviderBatch, error) {
	if b.ID == "" {
		e := failure.Errorf(failure.UpstreamInternal, "response about a batch does not have its id")
		e.RequestID = h.Get("X-Request-Id")
		return rewrite.ProviderBatch{}, e
	}
	batch := rewrite.ProviderBatch{ID: b.ID, Status: statusOf(b.Status), CreatedAt: createdAt(b), OutputFileID: orEmpty(b.OutputFileID), ErrorFileID: orEmpty(b.ErrorFileID), Lines: b.RequestCounts.Completed + b.RequestCounts.Failed}
	if b.Errors != nil {
		for _, e := range b.Errors.Data {
			problem := rewrite.BatchProblem{Code: codeOf(e.Code), Capacity: slices.Contains(capacityCodes, e.Code)}
			if e.Line != nil {
				problem.Line = *e.Line
			}
			batch.Problems = append(batch.Problems, problem)
		}
	}
	return batch, nil
}

// statusOf converts the provider's status; an unknown one is not final.
func statusOf(s string) rewrite.BatchStatus {
	switch status := rewrite.BatchStatus(s); status {
	case rewrite.BatchValidating, rewrite.BatchCompleted, rewrite.BatchFailed, rewrite.BatchExpired, rewrite.BatchCancelled:
		return status
	}
	return rewrite.BatchInProgress
}

// capacityCodes are the problems of a batch that its items do not cause.
var capacityCodes = []string{
	"token_limit_exceeded", "rate_limit_exceeded", "batch_limit_exceeded", "request_limit_exceeded",
	"insufficient_quota", "billing_hard_limit_reached", "server_error", "internal_error",
}

// identifier matches names that cannot contain a text.
var identifier = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// codeOf returns the provider's code if it is an identifier.
func codeOf(code string) string {
	if identifier.MatchString(code) {
		return code
	}
	return "unknown"
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
