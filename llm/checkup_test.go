package llm

import (
	"net/http"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

func TestCheckUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		endpoint http.Handler
		want     string
	}{
		"an honest endpoint": {&liar{lies: func(w http.ResponseWriter, h heard) {
			said200(w, findingsWith(codesIn(h.messages)), "stop", len(h.messages)/4, 20)
		}}, "a prompt of about "},
		"the simulator":            {llmsim.New(llmsim.Config{}), "a prompt of about "},
		"one that cuts prompts":    {&liar{lies: window(0, windowBytes)}, "prompt ignored: "},
		"one with a small context": {llmsim.New(llmsim.Config{ContextTokens: 8_000}), "prompt refused: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, test.endpoint, func(c *Config) { c.MaxAnswerTokens = 500 })
			detail, fix, err := r.CheckUp(t.Context(), "test-model")
			if fix != "" && !strings.Contains(fix, "its context length") {
				t.Errorf("fix %q", fix)
			}
			if err != nil || !strings.HasPrefix(detail, test.want) || (fix == "") != strings.HasPrefix(detail, "a prompt") {
				t.Errorf("%s; fix %q, error %v, want %s", detail, fix, err, test.want)
			}
		})
	}
}

// A refusal for another reason than the length of the prompt has its own advice.
func TestCheckUpOfOtherRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		endpoint http.Handler
		want     failure.Class
	}{
		"a parameter":  {respond(http.StatusBadRequest, `{"error":{"code":"unsupported_value","param":"messages"}}`), failure.ConfigInvalid},
		"no server":    {respond(http.StatusServiceUnavailable, ""), failure.UpstreamUnavailable},
		"no model":     {respond(http.StatusNotFound, `{"error":{"code":"model_not_found"}}`), failure.ConfigInvalid},
		"no access":    {respond(http.StatusForbidden, `{}`), failure.PermissionDenied},
		"a filter":     {respond(http.StatusBadRequest, `{"error":{"code":"content_filter"}}`), failure.ContentPolicy},
		"no reason":    {respond(http.StatusBadRequest, `{}`), failure.EndpointRefused},
		"no JSON":      {&liar{lies: func(w http.ResponseWriter, h heard) { said200(w, "no", "stop", len(h.messages)/4, 20) }}, failure.SchemaInvalid},
		"a cut answer": {&liar{lies: func(w http.ResponseWriter, h heard) { said200(w, "{", "length", len(h.messages)/4, 500) }}, failure.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, test.endpoint, func(c *Config) { c.MaxAnswerTokens = 500 })
			if detail, fix, err := r.CheckUp(t.Context(), "test-model"); failure.ClassOf(err) != test.want || detail+fix != "" {
				t.Errorf("got %q, fix %q, error %v, want class %s", detail, fix, err, test.want)
			}
		})
	}
}
