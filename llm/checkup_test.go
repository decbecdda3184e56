package llm

import (
	"net/http"
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
		}}, TrialHonored},
		"the simulator":            {llmsim.New(llmsim.Config{}), TrialHonored},
		"one that cuts prompts":    {&liar{lies: window(0, windowBytes)}, TrialIgnored},
		"one with a small context": {llmsim.New(llmsim.Config{ContextTokens: 8_000}), TrialRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, test.endpoint, func(c *Config) { c.MaxAnswerTokens = 500 })
			trial, err := r.CheckUp(t.Context())
			if err != nil || trial.Result != test.want || (trial.Fix != "") != (trial.Result != TrialHonored) {
				t.Errorf("trial %+v, error %v, want %s", trial, err, test.want)
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
