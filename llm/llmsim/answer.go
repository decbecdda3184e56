package llmsim

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A reply is what the client is sent.
type reply struct {
	status     int
	header     http.Header
	body       []byte
	hang, drop bool
}

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
	MaxTokens           int `json:"max_tokens"`
}

// prompt is all that was said to the model.
func (r chatRequest) prompt() string {
	var s strings.Builder
	for _, m := range r.Messages {
		s.WriteString(m.Content + "\n")
	}
	return s.String()
}

func (s *Server) answer(r *http.Request, c *call) reply {
	var req chatRequest
	if err := json.Unmarshal(c.body, &req); err != nil || len(req.Messages) == 0 || req.Stream {
		return apiErrors[BadRequest].reply()
	}
	prompt := req.prompt()
	fault := s.nextFault(prompt)
	out := s.faultReply(fault.Kind)
	switch {
	case fault.Kind != "" && out.reached():
	case !s.authorized(r):
		out = apiErrors[InvalidKey].reply()
	case s.cfg.ContextTokens > 0 && tokens(prompt) > s.cfg.ContextTokens:
		out = apiErrors[ContextLength].reply()
	default:
		out = s.completion(c.id, req, prompt, fault.Kind)
	}
	if fault.RetryAfter != "" && out.header != nil {
		out.header.Set("Retry-After", fault.RetryAfter)
	}
	return out
}

// faultReply is the reply to a fault that leaves the model out of it.
func (s *Server) faultReply(k FaultKind) reply {
	if e, ok := apiErrors[k]; ok {
		return e.reply()
	}
	if status, ok := proxyErrors[k]; ok {
		return html(status)
	}
	switch k {
	case Garbage:
		return html(http.StatusOK)
	case Hang:
		return reply{hang: true}
	case Drop:
		return reply{drop: true}
	}
	return reply{}
}

func (r reply) reached() bool { return r.status != 0 || r.hang || r.drop }

func (s *Server) authorized(r *http.Request) bool {
	if !s.cfg.APIKey.IsSet() {
		return true
	}
	want := "Bearer " + s.cfg.APIKey.Reveal()
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 1
}

func (e apiError) reply() reply {
	fields := map[string]any{"message": e.message, "type": e.kind, "param": nil, "code": nil}
	if e.code != "" {
		fields["code"] = e.code
	}
	return jsonReply(e.status, map[string]any{"error": fields})
}

func html(status int) reply {
	body := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
	return reply{status: status, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(body)}
}

func jsonReply(status int, v any) reply {
	body, _ := json.Marshal(v) // of maps, strings and numbers
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: body}
}

// completion is the model's own reply, spoiled as k says.
func (s *Server) completion(id string, req chatRequest, prompt string, k FaultKind) reply {
	m := spoil(review(prompt), k)
	if limit := max(req.MaxCompletionTokens, req.MaxTokens); limit > 0 && tokens(m.content) > limit {
		m.content, m.finish = m.content[:4*limit], "length"
	}
	var refusal any
	if m.refusal != "" {
		refusal = m.refusal
	}
	in, out := tokens(prompt), tokens(m.content)
	r := jsonReply(http.StatusOK, map[string]any{
		"id":      "chatcmpl-" + id,
		"object":  "chat.completion",
		"created": time.Now().Unix(),
		"model":   s.cfg.Model,
		"choices": []any{map[string]any{
			"index":         0,
			"message":       map[string]any{"role": "assistant", "content": m.content, "refusal": refusal},
			"finish_reason": m.finish,
		}},
		"usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
	})
	if k == CutBody {
		r.body = r.body[:len(r.body)/2]
	}
	return r
}

// tokens is the usual rough count.
func tokens(s string) int { return (len(s) + 3) / 4 }

// A message is what the model says.
type message struct{ content, refusal, finish string }

// spoil encodes findings as k says.
func spoil(fs []finding, k FaultKind) message {
	switch k {
	case WrongLines:
		for i := range fs {
			fs[i].Line += 1000
		}
	case UnknownPath:
		for i := range fs {
			fs[i].Path = "//depot/no/such/file.c"
		}
		fs = append(fs, finding{Path: "//depot/no/such/file.c", Severity: "high", Category: "correctness", Confidence: 0.9,
			Title: "Not about this change", Explanation: "This file is not part of the change.", Quote: "int main", Line: 1})
	}
	if fs == nil {
		fs = []finding{}
	}
	encoded, _ := json.Marshal(map[string]any{"findings": fs})
	m := message{content: string(encoded), finish: "stop"}
	switch k {
	case Fenced:
		m.content = "```json\n" + m.content + "\n```"
	case Prose:
		m.content = "Here is what I found.\n\n" + m.content + "\n\nLet me know if you need more."
	case Thinking:
		m.content = "<think>\nThe code says if (x) { y(); } which is fine.\n</think>\n\n" + m.content
	case NotJSON:
		m.content = "The change looks good to me."
	case BadSchema:
		m.content = `{"findings":[{"path":"a.c","severity":"enormous","title":"x"}]}`
	case CutAnswer:
		m.content = m.content[:len(m.content)/2]
	case Length:
		m.content, m.finish = m.content[:len(m.content)/2], "length"
	case Refusal:
		m.content, m.refusal = "", "I cannot help with that."
	case ContentFilter:
		m.content, m.finish = m.content[:len(m.content)/2], "content_filter"
	}
	return m
}
