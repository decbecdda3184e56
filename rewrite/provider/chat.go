package provider

import (
	"context"
	"net/http"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/rewrite"
)

// schemaName is the name of the answer schema on the wire.
const schemaName = "rewrite"

// chat makes one call of the chat API through the client of reviews.
func (r *Rewriter) chat(ctx context.Context, e *endpoint.Endpoint, p prompt) (rewrite.Answer, error) {
	request := endpoint.Request{
		Model: p.model, Tokens: (len(p.system) + len(p.user)) / bytesPerToken, MaxTokens: p.maxAnswerTokens,
		Format: endpoint.FormatSchema, Name: schemaName, Schema: p.schema, Whole: true,
	}
	var err error
	if request.System, err = r.pipeline.Compose(p.system); err == nil {
		request.User, err = r.pipeline.Compose(p.user)
	}
	if err != nil {
		return rewrite.Answer{}, err
	}
	a, err := e.Ask(ctx, request)
	spent := rewrite.Answer{Usage: rewrite.Usage{InputTokens: a.Usage.PromptTokens, OutputTokens: a.Usage.CompletionTokens}}
	switch {
	case err != nil:
		return spent, callError(err)
	case a.End() == endpoint.EndBroken:
		return spent, a.Broken()
	case a.End() == endpoint.EndRefused:
		return spent, refused("its content filter cut the answer off")
	case a.Refusal != "":
		return spent, refused("the model refused")
	case a.End() == endpoint.EndCut:
		return spent, cutOff()
	}
	whole, err := answer(a.Content, spent)
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

func readChat(resp object) (rewrite.Answer, error) {
	spent := spentOn(resp.object("usage"), "prompt_tokens", "completion_tokens")
	choices := resp.list("choices")
	switch {
	case len(choices) == 0 && resp.hasError():
		return spent, endpoint.Refused(http.StatusOK, resp["error"])
	case len(choices) == 0:
		return spent, malformed()
	}
	choice := objectOf(choices[0])
	message := choice.object("message")
	switch {
	case choice.text("finish_reason") == string(openai.FinishReasonContentFilter):
		return spent, refused("its content filter cut the answer off")
	case message.text("refusal") != "":
		return spent, refused("the model refused")
	case choice.text("finish_reason") == string(openai.FinishReasonLength):
		return spent, cutOff()
	}
	return answer(message.words("content", "text"), spent)
}
