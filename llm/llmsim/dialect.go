package llmsim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// A dialect is one wire format of a model call.
type dialect struct {
	read  func(body []byte) (query, bool)
	write func(completion) map[string]any
}

type query struct {
	prompt   string // all messages
	limit    int    // maximum tokens of the answer; 0 is unlimited
	model    string
	customID string // only for a line of a batch
	stream   bool
}

// A completion is the model's answer with its metadata.
type completion struct {
	message
	id, model string
	in, out   int // tokens
}

var chat = dialect{
	read: func(body []byte) (query, bool) {
		var req struct {
			Model    string `json:"model"`
			Stream   bool   `json:"stream"`
			Messages []struct {
				Content string `json:"content"`
			} `json:"messages"`
			MaxCompletionTokens int `json:"max_completion_tokens"`
			MaxTokens           int `json:"max_tokens"`
		}
		if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
			return query{}, false
		}
		var prompt strings.Builder
		for _, m := range req.Messages {
			prompt.WriteString(m.Content + "\n")
		}
		return query{prompt: prompt.String(), limit: max(req.MaxCompletionTokens, req.MaxTokens), model: req.Model, stream: req.Stream}, true
	},
	write: func(s completion) map[string]any {
		return map[string]any{
			"id":      "chatcmpl-" + s.id,
			"object":  "chat.completion",
			"created": time.Now().Unix(),
			"model":   s.model,
			"choices": []any{map[string]any{
				"index":         0,
				"message":       map[string]any{"role": "assistant", "content": s.content, "refusal": orNull(s.refusal)},
				"finish_reason": s.finish,
			}},
			"usage": map[string]any{"prompt_tokens": s.in, "completion_tokens": s.out, "total_tokens": s.in + s.out},
		}
	},
}

// streamed returns a chat completion as a stream of its parts.
func streamed(s completion) reply {
	var body strings.Builder
	event := func(delta map[string]any, finish, usage any) {
		choices := []any{}
		if delta != nil {
			choices = append(choices, map[string]any{"index": 0, "delta": delta, "finish_reason": finish})
		}
		body.WriteString("data: " + encoded(map[string]any{
			"id": "chatcmpl-" + s.id, "object": "chat.completion.chunk", "model": s.model, "choices": choices, "usage": usage,
		}) + "\n\n")
	}
	event(map[string]any{"role": "assistant", "content": ""}, nil, nil)
	half := len(s.content) / 2
	for _, part := range []string{s.content[:half], s.content[half:]} {
		event(map[string]any{"content": part, "refusal": orNull(s.refusal)}, nil, nil)
		s.refusal = ""
	}
	event(map[string]any{}, s.finish, nil)
	event(nil, nil, map[string]any{"prompt_tokens": s.in, "completion_tokens": s.out, "total_tokens": s.in + s.out})
	body.WriteString("data: [DONE]\n\n")
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream"}}, body: []byte(body.String())}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

var responses = dialect{
	read: func(body []byte) (query, bool) {
		var req struct {
			Model           string `json:"model"`
			Instructions    string `json:"instructions"`
			Input           string `json:"input"`
			MaxOutputTokens int    `json:"max_output_tokens"`
		}
		if json.Unmarshal(body, &req) != nil || req.Input == "" {
			return query{}, false
		}
		return query{prompt: req.Instructions + "\n" + req.Input + "\n", limit: req.MaxOutputTokens, model: req.Model}, true
	},
	write: func(s completion) map[string]any {
		content := map[string]any{"type": "output_text", "text": s.content, "annotations": []any{}}
		if s.refusal != "" {
			content = map[string]any{"type": "refusal", "refusal": s.refusal}
		}
		status, details := "completed", any(nil)
		switch s.finish {
		case "length":
			status, details = "incomplete", map[string]any{"reason": "max_output_tokens"}
		case "content_filter":
			status, details = "incomplete", map[string]any{"reason": "content_filter"}
		}
		return map[string]any{
			"id":                 "resp_" + s.id,
			"object":             "response",
			"created_at":         time.Now().Unix(),
			"model":              s.model,
			"status":             status,
			"error":              nil,
			"incomplete_details": details,
			"output": []any{
				map[string]any{"id": "rs_" + s.id, "type": "reasoning", "summary": []any{}},
				map[string]any{"id": "msg_" + s.id, "type": "message", "role": "assistant", "status": status, "content": []any{content}},
			},
			"usage": map[string]any{"input_tokens": s.in, "output_tokens": s.out, "total_tokens": s.in + s.out},
		}
	},
}

var gemini = dialect{
	read: func(body []byte) (query, bool) {
		type content struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		}
		var req struct {
			SystemInstruction content   `json:"systemInstruction"`
			Contents          []content `json:"contents"`
			GenerationConfig  struct {
				MaxOutputTokens int `json:"maxOutputTokens"`
			} `json:"generationConfig"`
		}
		if json.Unmarshal(body, &req) != nil || len(req.Contents) == 0 {
			return query{}, false
		}
		var prompt strings.Builder
		for _, c := range append([]content{req.SystemInstruction}, req.Contents...) {
			for _, p := range c.Parts {
				prompt.WriteString(p.Text + "\n")
			}
		}
		return query{prompt: prompt.String(), limit: req.GenerationConfig.MaxOutputTokens}, true
	},
	write: func(s completion) map[string]any {
		usage := map[string]any{"promptTokenCount": s.in, "candidatesTokenCount": s.out, "totalTokenCount": s.in + s.out}
		if s.refusal != "" {
			return map[string]any{"promptFeedback": map[string]any{"blockReason": "SAFETY"}, "usageMetadata": usage}
		}
		finish := map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}[s.finish]
		return map[string]any{
			"candidates": []any{map[string]any{
				"index":        0,
				"content":      map[string]any{"role": "model", "parts": []any{map[string]any{"text": s.content}}},
				"finishReason": finish,
			}},
			"usageMetadata": usage,
			"modelVersion":  s.model,
			"responseId":    s.id,
		}
	},
}
