package provider

import (
	"net/url"
	"strings"
)

// geminiRequest is the request of models.generateContent, version v1beta.
func geminiRequest(p prompt) any {
	parts := func(text string) []map[string]string { return []map[string]string{{"text": text}} }
	return map[string]any{
		"systemInstruction": map[string]any{"parts": parts(p.system)},
		"contents":          []map[string]any{{"role": "user", "parts": parts(p.user)}},
		"generationConfig": map[string]any{
			"maxOutputTokens": p.maxAnswerTokens, "responseMimeType": "application/json", "responseJsonSchema": p.schema,
		},
	}
}

func geminiURL(p prompt) string {
	return "/models/" + url.PathEscape(strings.TrimPrefix(p.model, "models/")) + ":generateContent"
}

func readGemini(resp object) (string, error) {
	if resp.object("promptFeedback").text("blockReason") != "" {
		return "", refused("its filter blocked the prompt")
	}
	candidates := resp.list("candidates")
	if len(candidates) == 0 {
		return "", malformed()
	}
	candidate := objectOf(candidates[0])
	switch candidate.text("finishReason") {
	case "STOP", "":
		var text strings.Builder
		for _, raw := range candidate.object("content").list("parts") {
			if part := objectOf(raw); !part.is("thought") { // reasoning is not part of the answer
				text.WriteString(part.text("text"))
			}
		}
		return answer(text.String())
	case "MAX_TOKENS":
		return "", cutOff()
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return "", refused("its filter cut the answer off")
	}
	return "", unusable("it has an unknown finish reason")
}
