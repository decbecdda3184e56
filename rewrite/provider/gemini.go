package provider

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/criticizer/criticizer/rewrite"
)

// The request of models.generateContent, version v1beta.
type (
	geminiContent struct {
		Role  string       `json:"role,omitempty"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		Text string `json:"text"`
	}
	geminiGenerate struct {
		SystemInstruction geminiContent   `json:"systemInstruction"`
		Contents          []geminiContent `json:"contents"`
		GenerationConfig  geminiConfig    `json:"generationConfig"`
	}
	geminiConfig struct {
		MaxOutputTokens    int             `json:"maxOutputTokens"`
		ResponseMIMEType   string          `json:"responseMimeType"`
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	}
)

func geminiRequest(p prompt) geminiGenerate {
	return geminiGenerate{
		SystemInstruction: geminiContent{Parts: []geminiPart{{Text: p.system}}},
		Contents:          []geminiContent{{Role: "user", Parts: []geminiPart{{Text: p.user}}}},
		GenerationConfig:  geminiConfig{p.maxAnswerTokens, "application/json", p.schema},
	}
}

func geminiURL(p prompt) string {
	return "/models/" + url.PathEscape(strings.TrimPrefix(p.model, "models/")) + ":generateContent"
}

func readGemini(resp object) (rewrite.Answer, error) {
	usage := resp.object("usageMetadata")
	spent := spentOn(usage, "promptTokenCount", "candidatesTokenCount")
	spent.Usage.OutputTokens += usage.number("thoughtsTokenCount")
	if resp.object("promptFeedback").text("blockReason") != "" {
		return spent, refused("its filter blocked the prompt")
	}
	candidates := resp.list("candidates")
	if len(candidates) == 0 {
		return spent, malformed()
	}
	candidate := objectOf(candidates[0])
	switch candidate.text("finishReason") {
	case "STOP", "":
		var text string
		for _, raw := range candidate.object("content").list("parts") {
			if part := objectOf(raw); !part.is("thought") { // reasoning is not part of the answer
				text += part.text("text")
			}
		}
		return answer(text, spent)
	case "MAX_TOKENS":
		return spent, cutOff()
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return spent, refused("its filter cut the answer off")
	}
	return spent, unusable("it has an unknown finish reason")
}
