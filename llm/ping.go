package llm

import (
	"context"

	openai "github.com/sashabaranov/go-openai"
)

// pingTokens is what a sign of life may cost, in either direction.
const pingTokens = 16

// Ping makes the smallest call of the model there is: over the same path, with
// the same key and model as a review, but with nothing of a change in it. Errors
// carry the class that a review would have met.
func (r *Reviewer) Ping(ctx context.Context) error {
	for {
		req := openai.ChatCompletionRequest{
			Model:               r.cfg.Model,
			Messages:            []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "Answer: ready."}},
			MaxCompletionTokens: pingTokens,
		}
		r.dialects.of(r.cfg.Model).adjust(&req)
		resp, err := r.send(ctx, req)
		if err == nil {
			return nil
		}
		if !r.adapt(ctx, r.cfg.Model, err) {
			return r.classify(ctx, err, resp.Header())
		}
	}
}
