package provider

import (
	"context"
	"encoding/json"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
)

// schemaName is the name of the answer schema on the wire.
const schemaName = "rewrite"

// chat makes one call of the chat API through the client of reviews.
func (r *Rewriter) chat(ctx context.Context, e *endpoint.Endpoint, p prompt) (string, error) {
	request := endpoint.Request{
		Model: p.model, Tokens: (len(p.system) + len(p.user)) / bytesPerToken, MaxTokens: p.maxAnswerTokens,
		Format: endpoint.FormatSchema, Name: schemaName, Schema: p.schema, Whole: true,
	}
	var err error
	if request.System, err = r.pipeline.Compose(p.system); err == nil {
		request.User, err = r.pipeline.Compose(p.user)
	}
	if err != nil {
		return "", err
	}
	return chatAnswer(e.Ask(ctx, request))
}

// chatRequest is a line of a batch.
func chatRequest(p prompt) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{
		Model: p.model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: p.system},
			{Role: openai.ChatMessageRoleUser, Content: p.user},
		},
		MaxCompletionTokens: p.maxAnswerTokens,
		ResponseFormat: &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: schemaName, Schema: p.schema, Strict: true},
		},
	}
}

// readChat reads the answer to a line of a batch.
func readChat(resp object) (string, error) {
	body, err := json.Marshal(resp)
	if err != nil {
		return "", malformed()
	}
	return chatAnswer(endpoint.Read(body))
}

func chatAnswer(a endpoint.Answer, err error) (string, error) {
	switch {
	case err != nil:
		return "", callError(err)
	case a.End() == endpoint.EndBroken:
		return "", a.Broken()
	case a.End() == endpoint.EndRefused:
		return "", refused("its content filter cut the answer off")
	case a.Refusal != "":
		return "", refused("the model refused")
	case a.End() == endpoint.EndCut:
		return "", cutOff()
	}
	whole, err := answer(a.Content)
	if err != nil && a.Early {
		err = a.Fail(failure.NetworkUnreachable, endpoint.ErrEarly)
	}
	return whole, err
}
