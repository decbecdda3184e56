package llmsim

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
)

// A reply is the response to a request.
type reply struct {
	status     int
	header     http.Header
	body       []byte
	hang, drop bool
}

// respond returns the reply of a fault that prevents the operation, an error if
// the key is wrong, or else the reply of serve.
func (s *Server) respond(r *http.Request, f Fault, serve func() reply) reply {
	out, failed := f.Kind.reply()
	switch {
	case failed:
	case !s.authorized(r):
		out = refuse(InvalidKey)
	default:
		out = serve().damaged(f.Kind)
	}
	if f.RetryAfter != "" && out.header != nil {
		out.header.Set("Retry-After", f.RetryAfter)
	}
	return out
}

// reply returns the reply to a fault that prevents the operation; ok is false
// for other faults.
func (k FaultKind) reply() (r reply, ok bool) {
	if status, ok := htmlReplies[k]; ok {
		body := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
		return reply{status: status, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(body)}, true
	}
	if apiErrors[k].status > 0 {
		return refuse(k), true
	}
	r = reply{hang: k == Hang, drop: k == Drop}
	return r, r.hang || r.drop
}

// refuse returns the error of a fault kind, as the API words it.
func refuse(k FaultKind) reply {
	e := apiErrors[k]
	return jsonReply(e.status, map[string]any{
		"error": map[string]any{"message": e.message, "type": e.kind, "param": nil, "code": orNull(e.code)},
	})
}

// damaged returns the reply of an executed operation under fault k.
func (r reply) damaged(k FaultKind) reply {
	switch k {
	case CutBody:
		r.body = r.body[:len(r.body)/2]
	case LostAnswer:
		return reply{drop: true}
	}
	return r
}

func jsonReply(status int, v any) reply {
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(encoded(v))}
}

// send writes a reply, or breaks the connection if the reply says so.
func send(w http.ResponseWriter, r *http.Request, out reply) {
	if out.hang {
		<-r.Context().Done()
	}
	if out.hang || out.drop {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), out.header)
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body)
}

func (s *Server) authorized(r *http.Request) bool {
	if !s.cfg.APIKey.IsSet() {
		return true
	}
	got := cmp.Or(r.Header.Get("X-Goog-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return subtle.ConstantTimeCompare([]byte(got), []byte(s.cfg.APIKey.Reveal())) == 1
}

// complete returns the model's reply to a prompt, changed as the fault says. The
// caller holds s.mu.
func (s *Server) complete(d dialect, id string, q query, f Fault) reply {
	if s.cfg.ContextTokens > 0 && tokens(q.prompt) > s.cfg.ContextTokens {
		return refuse(ContextLength)
	}
	var m message
	if complaint, ok := parseComplaint(q.prompt); ok {
		s.rewrites[cmp.Or(q.customID, complaint.fence)]++
		m = complaint.answer(f.Kind)
	} else if f.Kind == Scripted {
		with := strings.NewReplacer(`{"findings":[`, codesOf(q.prompt)+`"findings":[`, `{"verdicts":[`, codesOf(q.prompt)+`"verdicts":[`)
		m = message{content: with.Replace(f.Content), finish: "stop"}
	} else if strings.Contains(q.prompt, "\n=== begin findings ") {
		m = answer(codesOf(q.prompt)+`"findings":[],"verdicts":[]}`, f.Kind) // a verification: it keeps all findings
	} else {
		m = answer(codesOf(q.prompt)+`"findings":`+encoded(review(q.prompt))+"}", f.Kind)
	}
	if q.limit > 0 && tokens(m.content) > q.limit {
		m.content, m.finish = m.content[:4*q.limit], "length"
	}
	done := completion{id: id, model: cmp.Or(q.model, listedModel), message: m, in: tokens(q.prompt), out: tokens(m.content)}
	if q.stream {
		return streamed(done)
	}
	return jsonReply(http.StatusOK, d.write(done))
}

var codeLine = regexp.MustCompile(`(?m)^check-code: ([0-9a-f]{8})$`)

// codesOf returns the beginning of an answer: the check codes of the prompt.
func codesOf(prompt string) string {
	codes := []string{}
	for _, m := range codeLine.FindAllStringSubmatch(prompt, -1) {
		codes = append(codes, m[1])
	}
	return `{"codes":` + encoded(codes) + ","
}

// tokens estimates the number of tokens of s.
func tokens(s string) int { return (len(s) + 3) / 4 }

// encoded returns v, which consists of strings and numbers, as JSON.
func encoded(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// A message is the model's answer; finish has the values of a chat completion.
type message struct{ content, refusal, finish string }

// answer wraps encoded JSON in a message, changed as k says.
func answer(content string, k FaultKind) message {
	half := content[:len(content)/2]
	switch k {
	case Prose:
		content = "Here is what I found.\n\n" + content + "\n\nLet me know if you need more."
	case NotJSON:
		content = "The change looks good to me."
	case BadSchema:
		content = `{"findings":[{"path":"a.c","severity":"enormous","title":"x"}]}`
	case CutAnswer:
		content = half
	case Length:
		return message{content: half, finish: "length"}
	case Refusal:
		return message{refusal: "I cannot help with that.", finish: "stop"}
	case ContentFilter:
		return message{content: half, finish: "content_filter"}
	}
	return message{content: content, finish: "stop"}
}
