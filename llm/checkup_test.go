package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// A known answers 404 to models other than the one of the tests, as most servers do.
func known(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), unknownModel) {
			respond(http.StatusNotFound, openAIError("invalid_request_error", `"model_not_found"`)).ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next(w, r)
	})
}

func TestCheckUp(t *testing.T) {
	t.Parallel()
	honored := map[string]string{"schema": TrialHonored, "prompt": TrialHonored, "answer": TrialHonored, "refusal": TrialHonored}
	with := func(name, result string) map[string]string {
		out := map[string]string{name: result}
		for n, r := range honored {
			if n != name {
				out[n] = r
			}
		}
		return out
	}
	honest := func(w http.ResponseWriter, h heard) {
		said200(w, findingsWith(codesIn(h.messages)), "stop", len(h.messages)/4, 20)
	}
	for name, test := range map[string]struct {
		endpoint http.Handler
		want     map[string]string
	}{
		"an honest endpoint": {known((&liar{lies: honest}).ServeHTTP), honored},
		"the simulator":      {llmsim.New(llmsim.Config{}), with("refusal", TrialIgnored)},
		"one that cuts prompts": {known((&liar{lies: func(w http.ResponseWriter, h heard) {
			window(0, windowBytes)(w, h)
		}}).ServeHTTP), with("prompt", TrialIgnored)},
		"one with a small context": {known(llmsim.New(llmsim.Config{ContextTokens: 8_000}).ServeHTTP), with("prompt", TrialRefused)},
		"one that ignores the limit": {known((&liar{lies: func(w http.ResponseWriter, h heard) {
			said200(w, findingsWith(codesIn(h.messages)), "stop", len(h.messages)/4, 60*h.limit)
		}}).ServeHTTP), with("answer", TrialIgnored)},
		"one that ignores the schema": {known((&liar{lies: func(w http.ResponseWriter, h heard) {
			if len(codesIn(h.messages)) == 0 {
				said200(w, "Hello, reader.", "stop", len(h.messages)/4, 20)
				return
			}
			honest(w, h)
		}}).ServeHTTP), with("schema", TrialIgnored)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, test.endpoint, func(c *Config) { c.MaxAnswerTokens = 500 })
			trials, err := r.CheckUp(t.Context())
			if err != nil || len(trials) != len(test.want) {
				t.Fatalf("trials %+v, error %v", trials, err)
			}
			for _, trial := range trials {
				if trial.Result != test.want[trial.Name] || (trial.Fix != "") != (trial.Result != TrialHonored) {
					t.Errorf("%+v, want %s", trial, test.want[trial.Name])
				}
			}
		})
	}
}

func TestCheckUpOfADeadEndpoint(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, respond(http.StatusServiceUnavailable, ""))
	if _, err := r.CheckUp(t.Context()); failure.ClassOf(err) != failure.UpstreamUnavailable {
		t.Errorf("error %v", err)
	}
}
