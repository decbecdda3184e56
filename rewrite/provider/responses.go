package provider

import (
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/llm/endpoint"
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

func readResponse(resp object) (string, error) {
	if resp.hasError() {
		status := http.StatusOK
		if resp.object("error").text("code") == "invalid_prompt" {
			status = http.StatusBadRequest
		}
		return "", endpoint.Refused(status, resp["error"])
	}
	var text strings.Builder
	var refusal bool
	for _, raw := range resp.list("output") {
		item := objectOf(raw)
		text.WriteString(item.words("content", "output_text"))
		for _, part := range item.list("content") {
			refusal = refusal || objectOf(part).text("type") == "refusal"
		}
	}
	incomplete := resp.text("status") == string(openai.ResponseStatusIncomplete)
	switch {
	case incomplete && resp.object("incomplete_details").text("reason") == "content_filter":
		return "", refused("its content filter cut the answer off")
	case incomplete:
		return "", cutOff()
	case refusal:
		return "", refused("the model refused")
	}
	return answer(text.String())
}
