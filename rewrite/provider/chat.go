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

func readChat(resp openai.ChatCompletionResponse) (rewrite.Answer, error) {
	usage := rewrite.Usage{InputTokens: resp.Usage.PromptTokens, OutputTokens: resp.Usage.CompletionTokens}
	spent := rewrite.Answer{Usage: usage}
	if len(resp.Choices) == 0 {
		return spent, malformed()
	}
	choice := resp.Choices[0]
	switch {
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return spent, refused("its content filter cut the answer off")
	case choice.Message.Refusal != "":
		return spent, refused("the model refused")
	case choice.FinishReason == openai.FinishReasonLength:
		return spent, cutOff()
	}
	return answer(choice.Message.Content, usage)
}
