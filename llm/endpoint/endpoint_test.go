package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
)

// leak is part of what the endpoints of these tests say. No error may contain it.
const leak = "theEndpointSaidThis"

var pipeline = sync.OnceValues(func() (*redaction.Pipeline, error) {
	return redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
})

func composed(t *testing.T, s string) redaction.Text {
	t.Helper()
	p, err := pipeline()
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Compose(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A server records what it is asked and answers with serve, which gets the number of the
// request, from 1.
type server struct {
	serve  func(w http.ResponseWriter, n int, body map[string]any)
	mu     sync.Mutex
	bodies []map[string]any
	heads  []http.Header
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		http.NotFound(w, r)
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	s.bodies, s.heads = append(s.bodies, body), append(s.heads, r.Header)
	n := len(s.bodies)
	s.mu.Unlock()
	s.serve(w, n, body)
}

// says answers every request with a body.
func says(body string) *server {
	return &server{serve: func(w http.ResponseWriter, _ int, _ map[string]any) { _, _ = io.WriteString(w, body) }}
}

func newEndpoint(t *testing.T, h http.Handler, change ...func(*Config)) *Endpoint {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	p, err := pipeline()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default[Config]()
	cfg.BaseURL = srv.URL + "/v1"
	for _, c := range change {
		c(&cfg)
	}
	e, err := New(slog.New(slog.DiscardHandler), p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func question(t *testing.T) Request {
	t.Helper()
	return Request{
		Model: "o3-mini", System: composed(t, "Be brief."), User: composed(t, "Ready?"), Tokens: 10, MaxTokens: 4_000,
		Format: FormatSchema, Name: "ready", Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`),
		Fields: map[string]any{"temperature": 0.0, "top_k": 20, "reasoning_effort": "low"},
	}
}

// The request has what go-openai's type lacks, leaves out or refuses for a model by its name.
func TestRequest(t *testing.T) {
	t.Parallel()
	s := says(`{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	e := newEndpoint(t, s, func(c *Config) { c.Headers = []string{"X-Team: builds"}; c.APIKey = secret.New("the-key") })
	if a, err := e.Ask(t.Context(), question(t)); err != nil || a.Content != "yes" || a.Limit != 4_000 {
		t.Fatalf("answer %+v, error %v", a, err)
	}
	body, _ := json.Marshal(s.bodies[0])
	want := `{"max_tokens":4000,"messages":[{"content":"Be brief.","role":"system"},{"content":"Ready?","role":"user"}],"model":"o3-mini","reasoning_effort":"low",` +
		`"response_format":{"json_schema":{"name":"ready","schema":{"properties":{"a":{},"b":{}},"type":"object"},"strict":true},"type":"json_schema"},` +
		`"stream":true,"stream_options":{"include_usage":true},"temperature":0,"top_k":20}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if h := s.heads[0]; h.Get("Authorization") != "Bearer the-key" || h.Get("X-Team") != "builds" {
		t.Errorf("headers %v", h)
	}
}

// Odd shapes of answers are read as the regular one.
func TestShapes(t *testing.T) {
	t.Parallel()
	const chunk = `{"model":"m","choices":[{"delta":{"content":"%s"},"finish_reason":%s}]}`
	part := func(content, finish string) string { return "data: " + fmt.Sprintf(chunk, content, finish) + "\n\n" }
	for name, test := range map[string]struct {
		body string
		want Answer
	}{
		"stream":                 {part("a", "null") + part("b", `"stop"`) + "data: [DONE]\n\n", Answer{Content: "ab", Finish: "stop", Parts: 2}},
		"without a blank":        {"data:" + fmt.Sprintf(chunk, "a", `"stop"`) + "\r\n\r\ndata:[DONE]\r\n\r\n", Answer{Content: "a", Finish: "stop", Parts: 1}},
		"comments":               {strings.Repeat(": working\n\n", 1_000) + "retry: 5\nid: 7\nevent: message\n" + part("a", `"stop"`), Answer{Content: "a", Finish: "stop", Parts: 1}},
		"a byte order mark":      {"\ufeff" + part("a", `"stop"`), Answer{Content: "a", Finish: "stop", Parts: 1}},
		"empty events":           {"data:\n\n" + part("a", `"stop"`) + "data: \n\n", Answer{Content: "a", Finish: "stop", Parts: 1}},
		"comments in data":       {"data: : OPENROUTER PROCESSING\n\n" + part("a", "null") + "data: keep-alive\n\n" + part("b", `"stop"`), Answer{Content: "ab", Finish: "stop", Parts: 2}},
		"pings":                  {"event: ping\ndata: {\"type\": \"ping\"}\n\ndata: {}\n\n" + part("a", `"stop"`), Answer{Content: "a", Finish: "stop", Parts: 1}},
		"lines of an event":      {"data: {\"model\":\"m\",\ndata: \"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", Answer{Content: "a", Finish: "stop", Parts: 1}},
		"lines, then the end":    {"data: {\"model\":\"m\",\ndata: \"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\ndata: [DONE]\n", Answer{Content: "a", Finish: "stop", Parts: 1}},
		"messages of all so far": {`data: {"model":"m","choices":[{"message":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]}` + "\n\n", Answer{Content: "ab", Finish: "stop", Parts: 2}},
		"messages beside parts":  {`data: {"model":"m","choices":[{"message":{"content":"a"},"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"message":{"content":"ab"},"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n", Answer{Content: "ab", Finish: "stop", Parts: 2}},
		"a message at the end":   {part("a", "null") + part("a", "null") + `data: {"choices":[{"message":{"content":"aa"},"finish_reason":"stop"}]}` + "\n\n", Answer{Content: "aa", Finish: "stop", Parts: 3}},
		"parts of all so far":    {part("{", "null") + part("{ [", "null") + part("{ [] }", `"stop"`), Answer{Content: "{ [] }", Finish: "stop", Parts: 3}},
		"no end":                 {part("a", "null"), Answer{Content: "a", Early: true, Parts: 1}},
		"no end of a line":       {strings.TrimSpace(part("a", `"stop"`)), Answer{Content: "a", Finish: "stop", Parts: 1}},
		"half of a whole one":    {`{"model":"m","choices":[{"message":{"content":"a`, Answer{Early: true}},
		"no reason but an end":   {part("a", "null") + "data: [DONE]\n\n", Answer{Content: "a", Early: true, Parts: 1}},
		"ends after half a one":  {part("a", "null") + `data: {"choices":[{"del` + "\n", Answer{Content: "a", Early: true, Parts: 1}},
		"ends within an event":   {part("a", "null") + `data: {"choices":[{"del`, Answer{Content: "a", Early: true, Parts: 1}},
		"whole":                  {"{\n \"model\": \"m\",\n \"choices\": [{\"message\": {\"content\": \"a\"}, \"finish_reason\": \"stop\"}]\n}\n", Answer{Content: "a", Finish: "stop", Parts: 1}},
		"whole, as one event":    {`data: {"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, Answer{Content: "a", Finish: "stop", Parts: 1}},
		"a list of parts":        {`{"model":"m","choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]},"finish_reason":"stop"}]}`, Answer{Content: "a", Thinking: "hm", Finish: "stop", Parts: 1}},
		"thinking in a field":    {`{"model":"m","choices":[{"message":{"content":null,"reasoning_content":"hm","reasoning":"hm"},"finish_reason":"stop"}]}`, Answer{Thinking: "hm", Finish: "stop", Parts: 1}},
		"usage in the choice":    {`{"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":7,"cached_tokens":5}}]}`, Answer{Content: "a", Finish: "stop", Parts: 1}},
		"a field of other type":  {`{"model":"m","created":"now","choices":[{"index":"0","message":{"content":"a","tool_calls":null},"finish_reason":"stop"}]}`, Answer{Content: "a", Finish: "stop", Parts: 1}},
		"a tool":                 {`{"model":"m","choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]},"finish_reason":"tool_calls"}]}`, Answer{Finish: "tool_calls", Tools: true, Parts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newEndpoint(t, says(test.body)).Ask(t.Context(), question(t))
			if name == "usage in the choice" && (got.Usage.PromptTokens != 7 || got.Usage.CachedTokens != 5) {
				t.Errorf("usage %+v", got.Usage)
			}
			test.want.Limit, test.want.Begun, test.want.chosen, test.want.Usage = 4_000, true, test.want.Parts > 0, got.Usage
			if test.want.Parts > 0 {
				test.want.Model = "m"
			}
			if err != nil || got != test.want {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

// The work of an event grows with its lines, not with their square: eight times the lines take
// less than thirty times as long.
func TestLinesOfAnEventAreLinear(t *testing.T) {
	of := func(lines int) func() {
		body := "data: {\n" + strings.Repeat("data: \"k\":1,\n", lines) + "data: \"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
		return func() {
			var a Answer
			if err := a.receive(strings.NewReader(body), http.Header{}, 10); err != nil || a.Content != "a" {
				t.Errorf("answer %+v, error %v", a, err)
			}
		}
	}
	cputest.Linear(t, 30, 4*time.Millisecond, of(1_500), of(12_000))
}

func TestUsageOfVendors(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string][3]int{ // tokens of the prompt, cached, of the answer
		`"prompt_tokens":900,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":800}`:                   {900, 800, 5},
		`"prompt_tokens":900,"input_tokens":900,"completion_tokens":5,"output_tokens":5`:                            {900, 0, 5},
		`"input_tokens":900,"output_tokens":5`:                                                                      {900, 0, 5},
		`"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":800,"cache_read_input_tokens":0`:         {810, 0, 5},
		`"input_tokens":900,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":500`:        {1400, 500, 5},
		`"prompt_tokens":10,"completion_tokens":5,"cache_creation_input_tokens":300,"cache_read_input_tokens":500`:  {810, 500, 5},
		`"prompt_tokens":600,"completion_tokens":5,"cache_creation_input_tokens":300,"cache_read_input_tokens":500`: {1400, 500, 5},
		`"prompt_tokens":900,"completion_tokens":5,"cache_creation_input_tokens":300,"cache_read_input_tokens":500`: {900, 500, 5},
		`"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":500`:                                    {510, 500, 5},
	} {
		got, err := newEndpoint(t, says(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{`+usage+`}}`)).Ask(t.Context(), question(t))
		if u := got.Usage; err != nil || [3]int{u.PromptTokens, u.CachedTokens, u.CompletionTokens} != want {
			t.Errorf("%s: got %+v, error %v", usage, u, err)
		}
	}
}

// An error in an answer of status 200 has its class in every shape, and quotes nothing.
func TestErrorsWithinAnswers(t *testing.T) {
	t.Parallel()
	begun := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for name, test := range map[string]struct {
		body string
		want failure.Class
	}{
		"an error":             {begun + `data: {"error":{"message":"` + leak + `","code":502}}` + "\n\n", failure.UpstreamUnavailable},
		"a code as text":       {begun + `data: {"error": {"message":"` + leak + `","code":"429"}}` + "\n\n", failure.RateLimited},
		"an error line":        {begun + "error: " + leak + " is overloaded\n\n", failure.UpstreamUnavailable},
		"an error event":       {begun + "event: error\n" + `data: {"message":"` + leak + `","code":429}` + "\n\n", failure.RateLimited},
		"a text error event":   {begun + "event: error\ndata: " + leak + " is overloaded\n\n", failure.UpstreamUnavailable},
		"without a mark":       {begun + `{"error":{"message":"` + leak + `","code":"503"}}` + "\n", failure.UpstreamUnavailable},
		"of a choice":          {begun + `data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"` + leak + `"}}]}` + "\n\n", failure.UpstreamUnavailable},
		"whole":                {`{"error":"` + leak + ` rate limit"}`, failure.RateLimited},
		"an array":             {`[{"error":{"code":503,"message":"` + leak + `"}}]`, failure.UpstreamUnavailable},
		"at the top":           {`{"object":"error","message":"` + leak + `","code":429}`, failure.RateLimited},
		"without any code":     {`{"error":{"message":"` + leak + `"}}`, failure.UpstreamInternal},
		"HTML":                 {"<html>" + leak, failure.SchemaInvalid},
		"nothing":              {"", failure.SchemaInvalid},
		"only the end":         {"data: [DONE]\n\n", failure.SchemaInvalid},
		"not JSON":             {`{"choices":[{"message":{"content":` + leak, failure.SchemaInvalid},
		"no choice":            {`{"choices":[],"id":"` + leak + `"}`, failure.SchemaInvalid},
		"beside the usage":     {`{"choices":null,"usage":{"total_tokens":0},"base_resp":{"status_code":1008,"status_msg":"insufficient balance of ` + leak + `"}}`, failure.QuotaExhausted},
		"broken JSON, then on": {begun + "data: {" + leak + "\n\n" + begun, failure.SchemaInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newEndpoint(t, says(test.body)).Ask(t.Context(), question(t))
			if failure.ClassOf(err) != test.want {
				t.Errorf("got %s: %v, want %s", failure.ClassOf(err), err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), leak) {
				t.Errorf("the error quotes the endpoint: %v", err)
			}
		})
	}
}

// Only contents that were sealed for a call leave the process, also through go-openai's client
// itself (security 9.5.5).
func TestOnlySealedContentsAreSent(t *testing.T) {
	t.Parallel()
	s := says(`{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	e := newEndpoint(t, s)
	token := "AK" + "IA" + "6YPUJNNVRAD7FMJM"
	message := func(content string) []openai.ChatCompletionMessage {
		return []openai.ChatCompletionMessage{{Role: "user", Content: content}}
	}
	sealed := context.WithValue(t.Context(), callKey{}, &call{sealed: []string{"Ready?"}, alive: func() {}})
	for name, try := range map[string]func() error{
		"outside of a call": func() error {
			_, err := e.client.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Messages: message("Ready?")})
			return err
		},
		"not sealed": func() error {
			_, err := e.client.CreateChatCompletion(sealed, openai.ChatCompletionRequest{Messages: message("Something else")})
			return err
		},
		"in parts": func() error {
			_, err := e.client.CreateChatCompletion(sealed, openai.ChatCompletionRequest{Messages: []openai.ChatCompletionMessage{
				{Role: "user", MultiContent: []openai.ChatMessagePart{{Type: "text", Text: "Ready?"}}},
			}})
			return err
		},
		"another API": func() error {
			_, err := e.client.CreateCompletion(sealed, openai.CompletionRequest{Prompt: "Ready?"})
			return err
		},
		"a secret in a field": func() error {
			r := question(t)
			r.Model = token
			_, err := e.Ask(t.Context(), r)
			return err
		},
		"a text of another pipeline": func() error {
			other, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret"), Emails: true})
			if err != nil {
				return err
			}
			r := question(t)
			r.User, _ = other.Compose("Ready?")
			_, err = e.Ask(t.Context(), r)
			return err
		},
	} {
		err := try()
		if class := failure.ClassOf(err); class != failure.RedactionBlocked && class != failure.InvariantViolated {
			t.Errorf("%s: got %v of class %s", name, err, class)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error shows what was blocked: %v", name, err)
		}
	}
	if len(s.bodies) != 0 {
		t.Errorf("%d requests were sent", len(s.bodies))
	}
}

// A field that the endpoint refuses is left out and remembered if that helps. The answer limit
// is lowered to what the endpoint accepts.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	const good = `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`
	refuse := func(field, with string) func(http.ResponseWriter, int, map[string]any) {
		return func(w http.ResponseWriter, _ int, body map[string]any) {
			if body[field] == nil {
				_, _ = io.WriteString(w, good)
				return
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, with)
		}
	}
	for name, test := range map[string]struct {
		serve func(http.ResponseWriter, int, map[string]any)
		calls int // of the first question; the second one takes one call
		class failure.Class
	}{
		"the limit's field": {refuse("max_tokens", `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.","param":"max_tokens"}}`), 2, ""},
		"temperature":       {refuse("temperature", `{"error":{"message":"temperature is not supported"}}`), 2, ""},
		"effort":            {refuse("reasoning_effort", `{"error":"unknown field reasoning_effort"}`), 2, ""},
		"format":            {refuse("response_format", `{"detail":[{"loc":["body","response_format"],"msg":"extra fields not permitted"}]}`), 3, ""},
		"format, without words": {func(w http.ResponseWriter, _ int, body map[string]any) {
			if format, _ := body["response_format"].(map[string]any); format["type"] == "json_schema" {
				_, _ = io.WriteString(w, `{"object":"","choices":null,"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`)
				return
			}
			_, _ = io.WriteString(w, good)
		}, 2, ""},
		"stream": {func(w http.ResponseWriter, _ int, body map[string]any) {
			if body["stream"] == true {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"streaming is not supported"}`)
				return
			}
			_, _ = io.WriteString(w, good)
		}, 2, ""},
		"the limit": {func(w http.ResponseWriter, _ int, body map[string]any) {
			if n, _ := body["max_tokens"].(float64); n > 1_024 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"max_tokens is too large: 4000. This model supports at most 1024 completion tokens"}}`)
				return
			}
			_, _ = io.WriteString(w, good)
		}, 2, ""},
		"a retry that fails": {func(w http.ResponseWriter, n int, body map[string]any) {
			if n <= 2 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"temperature is not supported"}}`)
				return
			}
			if body["temperature"] == nil {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = io.WriteString(w, good)
		}, 2, failure.ConfigInvalid},
		"words of a 500": {func(w http.ResponseWriter, n int, body map[string]any) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"error":{"message":"upstream error in the reasoning engine: temperature is not supported"}}`)
				return
			}
			if body["temperature"] == nil || body["stream"] != true || body["reasoning_effort"] == nil {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = io.WriteString(w, good)
		}, 1, failure.UpstreamInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{serve: test.serve}
			e := newEndpoint(t, s)
			_, err := e.Ask(t.Context(), question(t))
			if got := failure.ClassOf(err); (err != nil) != (test.class != "") || err != nil && got != test.class || len(s.bodies) != test.calls {
				t.Fatalf("got %v after %d calls", err, len(s.bodies))
			}
			if _, err := e.Ask(t.Context(), question(t)); err != nil || len(s.bodies) != test.calls+1 {
				t.Errorf("the second question: %v after %d calls", err, len(s.bodies)-test.calls)
			}
		})
	}
}

// A key that is refused, or whose account has no credit, is replaced by the old one, whatever
// the status.
func TestOldKey(t *testing.T) {
	t.Parallel()
	for _, refusal := range []struct {
		status int
		body   string
	}{
		{401, ""},
		{400, `{"error":"Incorrect API key provided: n***w."}`},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota"}}`},
	} {
		var logs bytes.Buffer
		s := &server{}
		s.serve = func(w http.ResponseWriter, n int, _ map[string]any) {
			if s.heads[n-1].Get("Authorization") != "Bearer before" {
				w.WriteHeader(refusal.status)
				_, _ = io.WriteString(w, refusal.body)
				return
			}
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
		}
		e := newEndpoint(t, s, func(c *Config) {
			c.Dialect, c.APIKey = "hosted", secret.New("after\nbefore")
		})
		e.lg = slog.New(slog.NewTextHandler(&logs, nil))
		if a, err := e.Ask(t.Context(), question(t)); err != nil || a.Content != "yes" || len(s.bodies) != 2 || !strings.Contains(logs.String(), "key=old") {
			t.Errorf("%d: answer %+v after %d calls, error %v, log %s", refusal.status, a, len(s.bodies), err, logs.String())
		}
	}
}

// A broken connection and a silent endpoint have a class and no address in their error.
func TestBrokenCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  failure.Class
	}{
		"ends without an answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, failure.NetworkUnreachable},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+leak+".invalid/", http.StatusTemporaryRedirect)
		}, failure.ConfigInvalid},
		"no such path": {http.NotFound, failure.ConfigInvalid},
		"is silent":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, failure.NetworkTimeout},
		"speaks without end": {func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
					return
				}
			}
		}, failure.SchemaInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				test.serve(w, r)
			}), func(c *Config) {
				c.Dialect = "hosted"
				if test.want == failure.NetworkTimeout {
					c.Timeout = 100 * time.Millisecond
				}
			})
			_, err := e.Ask(t.Context(), question(t))
			if failure.ClassOf(err) != test.want || strings.Contains(err.Error(), leak) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("got %s: %v, want %s", failure.ClassOf(err), err, test.want)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e := newEndpoint(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), func(c *Config) { c.Dialect = "hosted" })
	if _, err := e.Ask(ctx, question(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("canceled: got %v", err)
	}
}

// A download has no body, so it names no type of one: some gateways refuse an empty type.
func TestDownloadHasNoContentType(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, sent := r.Header["Content-Type"]
		_, _ = fmt.Fprint(w, sent)
	}))
	body, err := e.Download(t.Context(), "/files/file-1/content")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if got, err := io.ReadAll(body); err != nil || string(got) != "false" {
		t.Errorf("a type was sent: %s, %v", got, err)
	}
}
