package provider

import (
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/rewrite"
)

// schemaName is the name of the answer schema on the wire.
const schemaName = "rewrite"

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
	if len(choices) == 0 {
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
