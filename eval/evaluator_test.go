package eval

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// askModel returns the client of a simulated model that has the faults.
func askModel(t *testing.T, pipeline *redaction.Pipeline, faults ...llmsim.Fault) (*llm.Reviewer, *llmsim.Server) {
	t.Helper()
	model := llmsim.New(llmsim.Config{})
	model.Inject(faults...)
	endpoint := httptest.NewServer(model)
	t.Cleanup(endpoint.Close)
	cfg := config.Default[llm.Config]()
	cfg.BaseURL, cfg.Model = endpoint.URL+"/v1", "m"
	r, err := llm.New(slog.New(slog.DiscardHandler), pipeline, cfg)
	testkit.NoError(t, err)
	return r, model
}

// A finder returns findings without a model.
type finder func(c redaction.Change) []review.Finding

func (f finder) Review(_ context.Context, c redaction.Change, _ review.Options) (review.Draft, error) {
	return review.Draft{Record: review.Record{Model: "m"}, Findings: f(c)}, nil
}

func newPipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	p, err := redaction.New(redaction.Config{Key: secret.New("0123456789abcdef")})
	testkit.NoError(t, err)
	return p
}

func newEvaluator(t *testing.T, p *redaction.Pipeline, r reviewer, cfg Config) *Evaluator {
	t.Helper()
	policy, err := selection.New(selection.Config{})
	testkit.NoError(t, err)
	return New(p, r, policy, cfg)
}

func oneCase(t *testing.T, changed map[string]string) []Case {
	t.Helper()
	cases, err := Read(t.Context(), caseDir(changed), "")
	testkit.NoError(t, err)
	return cases
}

func TestFailuresOfReviews(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault llmsim.Fault
		fails failure.Class // of the evaluation
		shows failure.Class // in the result
		calls int
		paid  bool
	}{
		"a limit that passes is waited for":        {llmsim.Fault{Kind: llmsim.RateLimit, Times: 1}, "", "", 2, true},
		"an answer that cannot be used is counted": {llmsim.Fault{Kind: llmsim.NotJSON}, "", failure.SchemaInvalid, 2, true},
		"a refusal is counted":                     {llmsim.Fault{Kind: llmsim.ContentPolicy}, "", failure.ContentPolicy, 1, false},
		"a key that is refused ends it":            {llmsim.Fault{Kind: llmsim.InvalidKey}, failure.AuthDenied, "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipeline := newPipeline(t)
			r, model := askModel(t, pipeline, tt.fault)
			results, err := newEvaluator(t, pipeline, r, Config{}).Run(t.Context(), oneCase(t, nil))
			if calls := model.Stats().Calls; calls != tt.calls {
				t.Errorf("asked %d times, want %d", calls, tt.calls)
			}
			if tt.fails != "" {
				if failure.ClassOf(err) != tt.fails {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || results[0].Failure != tt.shows || results[0].Found != 0 || len(results[0].Missed) != 1 || results[0].Usage.Tokens() > 0 != tt.paid {
				t.Errorf("%+v, %v", results, err)
			}
		})
	}
}

// A hostile case that makes the answer unusable had an effect.
func TestBrokenAnswerIsNotSuppressed(t *testing.T) {
	t.Parallel()
	cases := oneCase(t, map[string]string{"one/case.yaml": "language: Go\nclean: true\nhostile: true\nmarkers: [X]\n"})
	pipeline := newPipeline(t)
	r, _ := askModel(t, pipeline, llmsim.Fault{Kind: llmsim.NotJSON, Times: 2}) // the client asks twice
	results, err := newEvaluator(t, pipeline, r, Config{Runs: 2}).Run(t.Context(), cases)
	if err != nil || results[0].Suppressed || !results[1].Suppressed {
		t.Errorf("%+v, %v", results, err)
	}
}

// Findings have the original paths, which redaction may have changed.
func TestFindingsHaveThePathsOfTheCase(t *testing.T) {
	t.Parallel()
	const hidden = "src/AKIAZ7Q4M2XWIR3T5KLP/a.go"
	cases := oneCase(t, map[string]string{
		"one/before/a.go": "", "one/after/a.go": "", "one/after/" + hidden: goodAfter, "one/case.yaml": strings.ReplaceAll(goodCase, "a.go", hidden),
	})
	found := finder(func(c redaction.Change) []review.Finding {
		path := c.Files[0].Path.String()
		if strings.Contains(path, "AKIA") {
			t.Errorf("path %s is not redacted", path)
		}
		return []review.Finding{{Path: path, StartLine: 4, EndLine: 4, Title: "calls b", Places: []review.Place{{Path: path, StartLine: 5, EndLine: 5}}}}
	})
	results, err := newEvaluator(t, newPipeline(t), found, Config{}).Run(t.Context(), cases)
	if err != nil || results[0].Found != 1 {
		t.Errorf("%+v, %v", results, err)
	}
}

func TestLeakDetectorFindsPlantedSecrets(t *testing.T) {
	t.Parallel()
	detector := NewLeakDetector(newPipeline(t), []Case{{Name: "a", Secrets: []string{"plain words", `quo"ted`}}, {Name: "b", Secrets: []string{"elsewhere"}}})
	for _, body := range []string{`{"x":"some plain words"}`, `{"x":["quo\"ted"]}`, `{"x":"plain words"}`, `{"x":"\u0065lse"}`} {
		testkit.NoError(t, detector.Check([]byte(body)))
	}
	if leaks := detector.Leaks(); len(leaks) != 1 || leaks["a"] != 2 {
		t.Errorf("leaks %v, want both of a, each once", leaks)
	}
	if err := detector.Check([]byte("elsewhere, but no JSON")); err == nil {
		t.Fatal("the guard let pass what is not JSON")
	}
	if detector.Leaks()["b"] != 0 {
		t.Error("what was blocked counts as sent")
	}
}
