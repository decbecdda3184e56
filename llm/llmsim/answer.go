package llmsim

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A reply is what the client is sent.
type reply struct {
	status     int
	header     http.Header
	body       []byte
	hang, drop bool
}

func (s *Server) answer(r *http.Request, d dialect, c *call) reply {
	q, ok := d.read(c.body)
	if !ok {
		return apiErrors[BadRequest].reply()
	}
	fault := s.nextFault(Model, q)
	out := s.faultReply(fault.Kind)
	switch {
	case fault.Kind != "" && out.reached():
	case !s.authorized(r):
		out = apiErrors[InvalidKey].reply()
	default:
		out = s.think(d, c.id, q, fault)
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
	got := cmp.Or(r.Header.Get("X-Goog-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return subtle.ConstantTimeCompare([]byte(got), []byte(s.cfg.APIKey.Reveal())) == 1
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

// think is the model's own reply to a prompt, spoiled as the fault says.
func (s *Server) think(d dialect, id string, q query, f Fault) reply {
	if s.cfg.ContextTokens > 0 && tokens(q.prompt) > s.cfg.ContextTokens {
		return apiErrors[ContextLength].reply()
	}
	var m message
	if complaint, ok := parseComplaint(q.prompt); ok {
		s.countRewrite(cmp.Or(q.customID, complaint.fence))
		m = spoilRewrite(complaint, f.Kind)
	} else if f.Kind == Scripted {
		m = message{content: f.Content, finish: "stop"}
	} else if strings.Contains(q.prompt, "\n=== begin findings ") {
		m = spoilMessage(`{"verdicts":[]}`, f.Kind) // it stands by what it said
	} else {
		m = spoil(review(q.prompt), f.Kind)
	}
	if q.limit > 0 && tokens(m.content) > q.limit {
		m.content, m.finish = m.content[:4*q.limit], "length"
	}
	r := jsonReply(http.StatusOK, d.write(said{id: id, model: s.cfg.Model, message: m, in: tokens(q.prompt), out: tokens(m.content)}))
	if f.Kind == CutBody {
		r.body = r.body[:len(r.body)/2]
	}
	return r
}

// tokens is the usual rough count.
func tokens(s string) int { return (len(s) + 3) / 4 }

// A message is what the model says; finish is as a chat completion has it.
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
	return spoilMessage(string(encoded), k)
}

// spoilMessage spoils an encoded answer as k says.
func spoilMessage(content string, k FaultKind) message {
	m := message{content: content, finish: "stop"}
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
