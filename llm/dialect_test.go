package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A recording is an error of a server, with where it was published.
type recording struct {
	Dialect, Source string
	Status          int
	Class           failure.Class
	Retreats        bool // the request is made again in another way
	Body            json.RawMessage
}

func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for i, rec := range all {
		covered[rec.Dialect] = true
		t.Run(fmt.Sprintf("%d %s", i, rec.Dialect), func(t *testing.T) {
			t.Parallel()
			l := &liar{lies: func(w http.ResponseWriter, _ heard) {
				w.WriteHeader(rec.Status)
				_, _ = w.Write(rec.Body)
			}}
			r, _ := newReviewer(t, l, func(c *Config) { c.Dialect = rec.Dialect })
			_, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", "x")), review.Options{})
			if rec.Source == "" || failure.ClassOf(err) != rec.Class || (len(l.all) > 1) != rec.Retreats {
				t.Errorf("%s: error %v after %d calls, want %s", rec.Source, err, len(l.all), rec.Class)
			}
		})
	}
	for _, d := range dialects {
		if !covered[d.Name] {
			t.Errorf("dialect %s has no recording", d.Name)
		}
	}
}

// The host name, or the owner of the models, names the dialect; the server may report
// its context.
func TestDialectIsDetected(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://x.openai.azure.com/openai/v1": "azure",
		"https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21": "azure",
		"https://api.anthropic.com/v1":                                           "anthropic", "https://generativelanguage.googleapis.com/v1beta/openai": "gemini",
		"https://openrouter.ai/api/v1": "openrouter", "http://127.0.0.1:11434/v1": "generic",
	} {
		if got := dialectOf("auto", url); got.Name != want {
			t.Errorf("%s: %s, want %s", url, got.Name, want)
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
			r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case test.path:
					_, _ = w.Write([]byte(test.report))
				case "/v1/models":
					_, _ = fmt.Fprintf(w, `{"data":[{"owned_by":%q}]}`, owner)
				default:
					http.NotFound(w, req)
				}
			}))
			r.probe(t.Context())
			if r.dialect.Name != test.dialect || r.context != test.context {
				t.Errorf("dialect %s, context %d", r.dialect.Name, r.context)
			}
			if shown := r.Describe(t.Context()); !strings.Contains(shown, "dialect "+test.dialect) {
				t.Errorf("shows %q", shown)
			}
		})
	}
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
		{"openai", "gpt-5", "gpt-5-2025-08-07", true},
	} {
		if err := dialectOf(test.dialect, "").checkModel(test.asked, test.answered); (err == nil) != test.same {
			t.Errorf("%s: asked %s, answered %q: %v", test.dialect, test.asked, test.answered, err)
		}
	}
}

// The settings, the key's header and the query of the URL are in the request of either
// API, and the schema is if the answer format is.
func TestRequestHasTheSettings(t *testing.T) {
	t.Parallel()
	for api, path := range apiPaths {
		for _, format := range answerFormats {
			t.Run(api+" "+string(format), func(t *testing.T) {
				t.Parallel()
				var body map[string]any
				var sent *http.Request
				r, _ := newReviewer(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
					if req.Method == http.MethodPost {
						sent = req
						_ = json.NewDecoder(req.Body).Decode(&body)
					}
				}), func(c *Config) {
					c.API, c.BaseURL, c.Dialect, c.AnswerFormat = api, c.BaseURL+"?api-version=2024-10-21", "azure", format
					c.APIKey, c.Headers = secretKey, []string{"X-Team: builds"}
					c.Temperature, c.ReasoningEffort, c.MaxAnswerTokens = new(0.0), "low", 777
					c.Extra = `{"top_k": 20, "top_p": 0.5}`
				})
				_, _ = r.Review(t.Context(), redacted(t, added("//depot/a.go", "x")), review.Options{})
				if sent == nil || sent.URL.Path != "/v1"+path || sent.URL.RawQuery != "api-version=2024-10-21" || sent.Header.Get("api-key") != "the-key" || sent.Header.Get("X-Team") != "builds" {
					t.Fatalf("request %+v", sent)
				}
				want := map[string]any{"model": "test-model", "temperature": 0.0, "top_p": 0.5, "top_k": 20.0, "stream": true}
				var formatted any
				if api == apiResponses {
					want["max_output_tokens"], want["reasoning"] = 777.0, map[string]any{"effort": "low"}
					text, _ := body["text"].(map[string]any)
					formatted = text["format"]
				} else {
					want["max_completion_tokens"], want["reasoning_effort"] = 777.0, "low"
					formatted = body["response_format"]
				}
				for name, value := range want {
					if !reflect.DeepEqual(body[name], value) {
						t.Errorf("%s is %v, want %v", name, body[name], value)
					}
				}
				if has := strings.Contains(fmt.Sprint(formatted), "additionalProperties"); has != (format == FormatSchema) || body["tools"] != nil {
					t.Errorf("answer format %v, tools %v", formatted, body["tools"])
				}
			})
		}
	}
}

// Both APIs work, as a stream and whole.
func TestResponsesAPI(t *testing.T) {
	t.Parallel()
	d, err := withFaults(t, func(c *Config) { c.API = apiResponses }).review(t, buggy)
	if err != nil || len(d.Findings) != 2 || d.Usage.PromptTokens == 0 || d.Usage.Estimated {
		t.Errorf("draft %+v, error %v", d, err)
	}
	var c completion
	const event = `data: {"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
		`"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":8}}}}`
	stream := "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n" + event + "\n\n"
	if err := c.read(strings.NewReader(stream), 100); err != nil || c.content != "hi" || finishReasons[c.finish] != finishCut || c.reasoning != 8 || c.usage.CompletionTokens != 9 {
		t.Errorf("read %+v, %v", c, err)
	}
}
