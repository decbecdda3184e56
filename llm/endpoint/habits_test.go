package endpoint

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The host name, or the owner of the models, names the dialect; the server may report
// its context.
func TestDialectIsDetected(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"api.openai.com": "hosted", "x.openai.azure.com": "azure", "api.anthropic.com": "hosted", "generativelanguage.googleapis.com": "hosted",
		"openrouter.ai": "hosted", "127.0.0.1": "generic",
	} {
		if got := dialectOf("auto", host); got.Name != want {
			t.Errorf("%s: %s, want %s", host, got.Name, want)
		}
	}
	for owner, test := range map[string]struct {
		dialect, path, report string
		context               int
	}{
		"vllm":               {"vllm", "/v1/models", `{"data":[{"owned_by":"vllm","max_model_len":8192}]}`, 8_192},
		"llamacpp":           {"llamacpp", "/props", `{"default_generation_settings":{"n_ctx":4096}}`, 4_096},
		"library":            {"ollama", "/api/ps", `{"models":[{"context_length":32768},{"context_length":4096}]}`, 4_096},
		"organization_owner": {"lmstudio", "/api/v0/models", `{"data":[{"id":"x","loaded_context_length":16384},{"id":"y"}]}`, 16_384},
		"somebody":           {"generic", "/none", "", 0},
	} {
		t.Run(test.dialect, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case test.path:
					_, _ = w.Write([]byte(test.report))
				case "/v1/models":
					_, _ = fmt.Fprintf(w, `{"data":[{"owned_by":%q}]}`, owner)
				default:
					http.NotFound(w, req)
				}
			}))
			e.Probe(t.Context())
			if got := e.Context("m"); got != test.context {
				t.Errorf("context %d", got)
			}
			if shown := e.Describe(t.Context(), "m"); !strings.Contains(shown, "dialect "+test.dialect) {
				t.Errorf("shows %q", shown)
			}
		})
	}
}

// A server that starts after this process is asked for its family again.
func TestDialectOfALateServer(t *testing.T) {
	t.Parallel()
	started := false
	e := newEndpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !started {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, `{"data":[{"owned_by":"vllm","max_model_len":8192}]}`)
	}))
	e.Probe(t.Context())
	started = true
	e.silent = e.silent.Add(-probePause)
	e.Probe(t.Context())
	if got := e.Context("m"); got != 8_192 {
		t.Errorf("context %d", got)
	}
}

// An endpoint that does not list its models is not asked at every review.
func TestProbesAreFew(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusBadGateway} {
		asked := 0
		e := newEndpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(status)
		}))
		e.Probe(t.Context())
		e.Probe(t.Context())
		e.silent = e.silent.Add(-probePause)
		e.Probe(t.Context())
		if want := map[bool]int{true: 2, false: 1}[status == http.StatusBadGateway]; asked != want {
			t.Errorf("status %d: asked %d times", status, asked)
		}
	}
}

// A probe of an endpoint that was silent holds no other review.
func TestProbeHoldsNobody(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	e := newEndpoint(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	e.silent = time.Now().Add(-probePause)
	done := make(chan struct{})
	go func() {
		e.Probe(t.Context())
		close(done)
	}()
	<-asked
	e.Probe(t.Context()) // returns at once
	close(answer)
	<-done
}

func TestAnsweringModel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect, asked, answered string
		same                     bool
	}{
		{"generic", "qwen3", "qwen3", true},
		{"generic", "qwen3", "", true},
		{"generic", "org/Qwen3", "qwen3:latest", true},
		{"generic", "qwen3", "qwen3-2507", true},
		{"generic", "qwen3", "qwen3-0.6b", false},
		{"generic", "gpt-4", "gpt-4o", false},
		{"ollama", "llama3.3:70b", "llama3.3:8b", false},
		{"azure", "our-deployment", "gpt-4o-2024-11-20", true},
		{"hosted", "gpt-5", "gpt-5-2025-08-07", true},
	} {
		e := newEndpoint(t, http.NotFoundHandler(), func(c *Config) { c.Dialect = test.dialect })
		if err := e.CheckModel(test.asked, Answer{Model: test.answered}); (err == nil) != test.same {
			t.Errorf("%s: asked %s, answered %q: %v", test.dialect, test.asked, test.answered, err)
		}
	}
}
