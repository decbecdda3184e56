package provider

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// bytesPerToken is a low guess, so that tokens are not counted too few.
const bytesPerToken = 3

// A request is one line of a batch's input file.
type request struct {
	CustomID string               `json:"custom_id"`
	Method   string               `json:"method"`
	URL      openai.BatchEndpoint `json:"url"`
	Body     any                  `json:"body"`
}

// line is the line of an item. It is the same whenever it is made.
func (r *Rewriter) line(a adapter, to rewrite.RoutingDecision, item rewrite.Item) ([]byte, error) {
	p, err := r.prompt(to, item)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(request{item.CustomID(), "POST", a.path, a.body(p)})
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "encode a line of a batch: %w", err)
	}
	return line, nil
}

// Weigh tells what item takes up in a batch.
func (r *Rewriter) Weigh(to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Weight, error) {
	_, a, err := r.openBatches(to)
	if err != nil {
		return rewrite.Weight{}, err
	}
	line, err := r.line(a, to, item)
	return rewrite.Weight{Bytes: len(line) + 1, Tokens: len(line) / bytesPerToken}, err
}

// Upload stores the items' input file, a line for each in their order, and
// returns its id. The lines are made while they are sent.
func (r *Rewriter) Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (fileID string, err error) {
	endpoint, a, err := r.openBatches(to)
	if err != nil {
		return "", err
	}
	fields := map[string]string{"purpose": string(openai.PurposeBatch)}
	body, err := endpoint.Upload(ctx, "/files", "rewrites.jsonl", fields, r.lines(a, to, items))
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	var file openai.File
	if err := json.NewDecoder(io.LimitReader(body, maxLine)).Decode(&file); err != nil || file.ID == "" {
		return "", failure.Errorf(failure.UpstreamInternal, "upload a batch: the provider's answer names no file")
	}
	return file.ID, nil
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

// Delete removes a file at the provider. One that is gone is no error.
func (r *Rewriter) Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error {
	endpoint, _, err := r.openBatches(to)
	if err != nil {
		return err
	}
	call, cancel := endpoint.Bound(ctx)
	defer cancel()
	err = endpoint.OpenAI().DeleteFile(call, url.PathEscape(fileID))
	if err == nil {
		return nil
	}
	if err = endpoint.Classify(ctx, err, nil); failure.ClassOf(err) == failure.NotFound {
		return nil
	}
	return err
}
