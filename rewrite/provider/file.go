package provider

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// bytesPerToken is a low estimate, so that the token count is not too low.
const bytesPerToken = 3

// A request is one line of a batch's input file.
type request struct {
	CustomID string               `json:"custom_id"`
	Method   string               `json:"method"`
	URL      openai.BatchEndpoint `json:"url"`
	Body     any                  `json:"body"`
}

// line returns the line of an item, the same in every call.
func (r *Rewriter) line(a adapter, to rewrite.RoutingDecision, item rewrite.Item) ([]byte, error) {
	p, err := r.prompt(to, item)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(request{item.JobID, "POST", a.path, a.body(p)})
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "encode a line of a batch: %w", err)
	}
	return line, nil
}

// Weigh returns the tokens of item in a batch, estimated.
func (r *Rewriter) Weigh(to rewrite.RoutingDecision, item rewrite.Item) (int, error) {
	_, a, err := r.openBatches(to)
	if err != nil {
		return 0, err
	}
	line, err := r.line(a, to, item)
	return len(line) / bytesPerToken, err
}

// Upload uploads the input file, one line per item in their order, and returns its id.
// It encodes the lines while it sends them.
func (r *Rewriter) Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (fileID string, err error) {
	endpoint, a, err := r.openBatches(to)
	if err != nil {
		return "", err
	}
	body, err := endpoint.Upload(ctx, "/files", "rewrites.jsonl", string(openai.PurposeBatch), r.lines(a, to, items))
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	response, err := io.ReadAll(io.LimitReader(body, maxLine))
	if err != nil {
		return "", err
	}
	if fileID = objectOf(response).text("id"); fileID == "" {
		return "", failure.Errorf(failure.UpstreamInternal, "upload a batch: the response has no file id")
	}
	return fileID, nil
}

func (r *Rewriter) lines(a adapter, to rewrite.RoutingDecision, items []rewrite.Item) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, item := range items {
			if line, err := r.line(a, to, item); !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// FileStatus returns the status of an uploaded file, such as pending or processed; empty if the
// provider names none.
func (r *Rewriter) FileStatus(ctx context.Context, to rewrite.RoutingDecision, fileID string) (string, error) {
	file, _, err := r.call(ctx, to, http.MethodGet, "/files/"+url.PathEscape(fileID), nil)
	return file.text("status"), err
}

// Delete deletes a file at the provider; a missing file is not an error.
func (r *Rewriter) Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error {
	_, _, err := r.call(ctx, to, http.MethodDelete, "/files/"+url.PathEscape(fileID), nil)
	if failure.ClassOf(err) == failure.NotFound {
		return nil
	}
	return err
}
