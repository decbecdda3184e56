package provider

import (
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/rewrite"
)

// responseRequest has the provider store nothing.
func responseRequest(p prompt) openai.CreateResponseRequest {
	return openai.CreateResponseRequest{
		Model:           p.model,
		Instructions:    p.system,
		Input:           p.user,
		MaxOutputTokens: p.maxAnswerTokens,
		Store:           new(false),
		Text: &openai.ResponseTextConfig{
			Format: &openai.ResponseTextFormat{Type: "json_schema", Name: schemaName, Schema: p.schema, Strict: true},
		},
	}
}

func readResponse(resp openai.CreateResponseResponse) (rewrite.Answer, error) {
	var usage rewrite.Usage
	if resp.Usage != nil {
		usage = rewrite.Usage{InputTokens: resp.Usage.InputTokens, OutputTokens: resp.Usage.OutputTokens}
	}
	spent := rewrite.Answer{Usage: usage}
	if resp.Error != nil {
		return spent, failedResponse(resp.Error.Code)
	}
	text, refusal := outputText(resp.Output)
	switch {
	case resp.Status == openai.ResponseStatusIncomplete && resp.IncompleteDetails != nil && resp.IncompleteDetails.Reason == "content_filter":
		return spent, refused("its content filter cut the answer off")
	case resp.Status == openai.ResponseStatusIncomplete:
		return spent, cutOff()
	case refusal:
		return spent, refused("the model refused")
	}
	return answer(text, usage)
}

// failedResponse returns the error of a response that failed after it was accepted.
func failedResponse(code string) error {
	status := http.StatusInternalServerError
	switch code {
	case "rate_limit_exceeded":
		status = http.StatusTooManyRequests
	case "invalid_prompt":
		status = http.StatusBadRequest
	}
	return llm.Refused(status, code, "", "")
}

// outputText returns the text of an output's messages, and whether one is a refusal.
// go-openai does not decode the items of an output.
func outputText(output []any) (text string, refusal bool) {
	var s strings.Builder
	for _, item := range output {
		fields, _ := item.(map[string]any)
		content, _ := fields["content"].([]any)
		for _, c := range content {
			part, _ := c.(map[string]any)
			refusal = refusal || part["type"] == "refusal"
			if words, ok := part["text"].(string); ok && part["type"] == "output_text" {
				s.WriteString(words)
			}
		}
	}
	return s.String(), refusal
}
