package provider

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/criticizer/criticizer/rewrite"
)

// The request and answer of models.generateContent, version v1beta.
type (
	geminiContent struct {
		Role  string       `json:"role,omitempty"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		Text string `json:"text"`
		// Thought marks reasoning, which is not part of the answer.
		Thought bool `json:"thought,omitempty"`
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
	geminiAnswer struct {
		Candidates []struct {
			Content      geminiContent `json:"content"`
			FinishReason string        `json:"finishReason"`
		} `json:"candidates"`
		PromptFeedback struct {
			BlockReason string `json:"blockReason"`
		} `json:"promptFeedback"`
		UsageMetadata struct {
			PromptTokenCount     int `json:"promptTokenCount"`
			CandidatesTokenCount int `json:"candidatesTokenCount"`
			ThoughtsTokenCount   int `json:"thoughtsTokenCount"`
		} `json:"usageMetadata"`
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

func readGemini(resp geminiAnswer) (rewrite.Answer, error) {
	u := resp.UsageMetadata
	usage := rewrite.Usage{InputTokens: u.PromptTokenCount, OutputTokens: u.CandidatesTokenCount + u.ThoughtsTokenCount}
	spent := rewrite.Answer{Usage: usage}
	switch {
	case resp.PromptFeedback.BlockReason != "":
		return spent, refused("its filter blocked the prompt")
	case len(resp.Candidates) == 0:
		return spent, malformed()
	}
	switch c := resp.Candidates[0]; c.FinishReason {
	case "STOP", "":
		return answer(c.Content.text(), usage)
	case "MAX_TOKENS":
		return spent, cutOff()
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return spent, refused("its filter cut the answer off")
	}
	return spent, unusable("it has an unknown finish reason")
}

func (c geminiContent) text() string {
	var s strings.Builder
	for _, p := range c.Parts {
		if !p.Thought {
			s.WriteString(p.Text)
		}
	}
	return s.String()
}
