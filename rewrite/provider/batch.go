package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/rewrite"
)

const (
	submissionKey = "submission_key" // name of the key in a batch's metadata
	installation  = "installation"   // name of our installation there
	pageSize      = 100              // of the API's list of batches
	maxPages      = 200              // of a search; an account has a few batches a day
)

// openBatches returns the endpoint and the adapter of a decision, if it has batches.
func (r *Rewriter) openBatches(to rewrite.RoutingDecision) (*endpoint.Endpoint, adapter, error) {
	endpoint, a, err := r.open(to)
	if err == nil && a.path == "" {
		err = failure.Errorf(failure.AdapterUnsupported, "adapter %s has no batches at provider %s: use execution mode async", to.AdapterKind, to.Provider)
	}
	return endpoint, a, err
}

// call makes one call of the batch API.
func (r *Rewriter) call(ctx context.Context, to rewrite.RoutingDecision, method, path string, in any) (object, http.Header, error) {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return nil, nil, err
	}
	var raw json.RawMessage
	h, err := endpoint.Call(ctx, method, path, in, &raw)
	return objectOf(raw), h, err
}

// Create creates a batch of an uploaded file with key in its metadata. After an error
// the batch may exist: look for it in [Rewriter.Batches]. [rewrite.ErrNoRoom] has class [failure.RateLimited].
func (r *Rewriter) Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (rewrite.ProviderBatch, error) {
	created, err := r.callBatch(ctx, to, "", fileID, http.MethodPost, "/batches", openai.CreateBatchRequest{
		InputFileID: fileID, Endpoint: adapters[to.AdapterKind].path, CompletionWindow: "24h",
		Metadata: map[string]any{submissionKey: key, installation: r.cfg.Installation},
	})
	// A creation has no lines: if it has too many tokens, these are enqueued. 413 is about the file.
	if f, ok := errors.AsType[*failure.Error](err); ok && (noRoomCode.MatchString(f.Upstream) || f.Class == failure.TooLarge && !strings.HasPrefix(f.Upstream, "413")) {
		err = failure.Errorf(failure.RateLimited, "%w: %w", rewrite.ErrNoRoom, err)
	}
	return created, err
}

// Poll returns the batch. The error has class [failure.NotFound] if the provider has
// deleted it.
func (r *Rewriter) Poll(ctx context.Context, to rewrite.RoutingDecision, batchID string) (rewrite.ProviderBatch, error) {
	return r.callBatch(ctx, to, batchID, "", http.MethodGet, "/batches/"+url.PathEscape(batchID), nil)
}

// Cancel asks the provider to end the batch. Finished items keep their results.
func (r *Rewriter) Cancel(ctx context.Context, to rewrite.RoutingDecision, batchID string) error {
	_, err := r.callBatch(ctx, to, batchID, "", http.MethodPost, "/batches/"+url.PathEscape(batchID)+"/cancel", nil)
	return err
}

// callBatch makes a call whose response is the batch with this ID or, if the ID is not known yet,
// this input file. A response about another batch is an error: its files belong to other jobs.
func (r *Rewriter) callBatch(ctx context.Context, to rewrite.RoutingDecision, batchID, fileID, method, path string, in any) (rewrite.ProviderBatch, error) {
	response, h, err := r.call(ctx, to, method, path, in)
	if err != nil {
		return rewrite.ProviderBatch{}, err
	}
	b := batchOf(response)
	if b.ID == "" || batchID != "" && b.ID != batchID || fileID != "" && b.InputFileID != "" && b.InputFileID != fileID {
		e := failure.Errorf(failure.UpstreamInternal, "response about a batch does not have its id")
		e.RequestID = h.Get("X-Request-Id")
		return rewrite.ProviderBatch{}, e
	}
	return b, nil
}

// Batches returns the batches that were created since by the provider's clock, newest first. It pages
// through the provider's list; an entry that cannot be read has no fields. An answer that is not a
// list, or cannot be paged, is an error with the batches before it: another batch may exist.
func (r *Rewriter) Batches(ctx context.Context, to rewrite.RoutingDecision, since time.Time) (batches []rewrite.ProviderBatch, err error) {
	path := fmt.Sprintf("/batches?limit=%d", pageSize)
	for range maxPages {
		page, _, err := r.call(ctx, to, http.MethodGet, path, nil)
		if err != nil {
			return batches, err
		}
		entries := page.list("data")
		if entries == nil && string(page["data"]) != "null" {
			return batches, failure.Errorf(failure.UpstreamInternal, "list batches: the response has no list")
		}
		last, oldest := page.text("last_id"), time.Time{}
		for _, entry := range entries {
			b := batchOf(objectOf(entry))
			last = cmp.Or(b.ID, last)
			if !b.CreatedAt.IsZero() {
				oldest = b.CreatedAt
			}
			batches = append(batches, b)
		}
		switch {
		case !page.is("has_more") || !oldest.IsZero() && oldest.Before(since):
			return batches, nil
		case last == "":
			return batches, failure.Errorf(failure.UpstreamInternal, "list batches: a page has no id to go on from")
		}
		path = fmt.Sprintf("/batches?limit=%d&after=%s", pageSize, url.QueryEscape(last))
	}
	return batches, failure.Errorf(failure.UpstreamInternal, "list batches: the provider's list has more than %d pages", maxPages)
}

// batchOf converts a batch of the API.
func batchOf(b object) rewrite.ProviderBatch {
	counts := b.object("request_counts")
	batch := rewrite.ProviderBatch{
		ID: b.text("id"), Key: b.object("metadata").text(submissionKey), Installation: b.object("metadata").text(installation),
		InputFileID: b.text("input_file_id"), Status: statusOf(b.text("status")), CreatedAt: b.time("created_at"),
		OutputFileID: b.text("output_file_id"), ErrorFileID: b.text("error_file_id"), Lines: counts.number("completed") + counts.number("failed"),
	}
	problems := b.list("errors")
	if problems == nil {
		problems = b.object("errors").list("data")
	}
	if problems == nil && b.text("errors") != "" {
		problems = []json.RawMessage{b["errors"]}
	}
	for _, raw := range problems {
		p := objectOf(raw)
		code, words := p.text("code"), failure.ClassOf(endpoint.Refused(http.StatusOK, raw))
		switch {
		case capacityCode.MatchString(code):
			batch.Full = true
		case endpointCode.MatchString(code), lostFile.MatchString(p.text("message")):
			batch.Refused = true
		case words == failure.RateLimited || words == failure.QuotaExhausted:
			batch.Full = true
		case slices.Contains([]failure.Class{failure.AuthDenied, failure.PermissionDenied, failure.NotFound, failure.ConfigInvalid}, words):
			batch.Refused = true
		case p.number("line") > 0:
			batch.FaultyLines = append(batch.FaultyLines, p.number("line"))
		}
	}
	return batch
}

// statusOf converts the provider's status; an unknown one is not final.
func statusOf(s string) rewrite.BatchStatus {
	switch strings.ToLower(s) {
	case "validating":
		return rewrite.BatchValidating
	case "completed", "succeeded", "success", "ended", "finished", "done":
		return rewrite.BatchCompleted
	case "failed", "error":
		return rewrite.BatchFailed
	case "expired", "timeout_exceeded", "timed_out":
		return rewrite.BatchExpired
	case "cancelled", "canceled":
		return rewrite.BatchCancelled
	}
	return rewrite.BatchInProgress
}

// capacityCode and endpointCode match the codes of problems that no item of the batch causes: the
// provider has no room now, or serves nobody this model or this account. noRoomCode matches the
// codes of a creation that is refused because of what is enqueued.
var (
	capacityCode = regexp.MustCompile(`(?:token|rate|request|batch|file|queue|enqueued|usage|concurrency|size)s?_(?:size_)?limit|` +
		`enqueued|quota|billing|capacity|credit|overload|busy|unavailable|too_many|file_too_large|(?:server|internal)_error|(?:runner|worker)_lost`)
	noRoomCode   = regexp.MustCompile(`(?:token|batch|file|queue|request)s?_(?:size_)?limit|enqueued|capacity|too_many_(?:batches|lines|requests_in)`)
	endpointCode = regexp.MustCompile(`model|api_key|auth|permission|forbidden|access|account|organization|project|region|location|` +
		`endpoint|url_mismatch|deprecated|not_supported|unsupported|disabled|terminated|empty_file|file_not_found`)
	lostFile = regexp.MustCompile(`(?i)^cannot find file\b`) // which has been uploaded
)
