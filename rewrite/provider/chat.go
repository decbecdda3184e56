package provider

import (
	"context"
	"net/http"

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
	a, err := e.Ask(ctx, request)
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

func readChat(resp object) (string, error) {
	choices := resp.list("choices")
	switch {
	case len(choices) == 0 && resp.hasError():
		return "", endpoint.Refused(http.StatusOK, resp["error"])
	case len(choices) == 0:
		return "", malformed()
	}
	choice := objectOf(choices[0])
	message := choice.object("message")
	switch {
	case choice.text("finish_reason") == string(openai.FinishReasonContentFilter):
		return "", refused("its content filter cut the answer off")
	case message.text("refusal") != "":
		return "", refused("the model refused")
	case choice.text("finish_reason") == string(openai.FinishReasonLength):
		return "", cutOff()
	}
	return answer(message.words("content", "text"))
}
