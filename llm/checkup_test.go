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
			detail, fix, err := r.CheckUp(t.Context())
			if err != nil || !strings.HasPrefix(detail, test.want) || (fix == "") != strings.HasPrefix(detail, "a prompt") {
				t.Errorf("%s; fix %q, error %v, want %s", detail, fix, err, test.want)
			}
		})
	}
}

func TestCheckUpOfADeadEndpoint(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, respond(http.StatusServiceUnavailable, ""))
	if _, _, err := r.CheckUp(t.Context()); failure.ClassOf(err) != failure.UpstreamUnavailable {
		t.Errorf("error %v", err)
	}
}
