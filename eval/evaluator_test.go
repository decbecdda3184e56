package eval

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// A fakeReviewer returns errs first, then findings. A call that the endpoint refused has
// used no tokens.
type fakeReviewer struct {
	errs     []error
	findings func(c redaction.Change) []review.Finding
	calls    atomic.Int32
}

func (s *fakeReviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	n := int(s.calls.Add(1))
	used := review.Usage{Calls: 1}
	if n > len(s.errs) || failure.ClassOf(s.errs[n-1]) == failure.SchemaInvalid {
		used.PromptTokens, used.CompletionTokens = 10, 1
	}
	if err := o.Budget.Settle(ctx, review.Grant{}, used); err != nil {
		return review.Draft{}, err
	}
	if n <= len(s.errs) {
		return review.Draft{}, s.errs[n-1]
	}
	d := review.Draft{Model: "m"}
	if s.findings != nil {
		d.Findings = s.findings(c)
	}
	return d, nil
}

// The fake reviewer settles its tokens and returns the classes as the client of a model does.
func TestFakeReviewerBehavesAsTheClient(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	change, err := pipeline.Change(review.Change{Number: 1, Files: []review.File{
		{DepotPath: "//depot/a.go", Action: review.ActionAdd, Type: "text", Diff: "@@ -0,0 +1,1 @@\n+package a\n"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		fault llmsim.FaultKind
		class failure.Class
	}{
		"a review":               {"", ""},
		"a limit that passes":    {llmsim.RateLimit, failure.RateLimited},
		"an answer without JSON": {llmsim.NotJSON, failure.SchemaInvalid},
		"a refusal":              {llmsim.ContentPolicy, failure.ContentPolicy},
		"a key that is refused":  {llmsim.InvalidKey, failure.AuthDenied},
	} {
		model, fake := llmsim.New(llmsim.Config{}), &fakeReviewer{}
		if tt.fault != "" {
			fake.errs = []error{failure.Errorf(tt.class, "as injected")}
			if err := model.Inject(llmsim.Fault{Kind: tt.fault}); err != nil {
				t.Fatal(err)
			}
		}
		endpoint := httptest.NewServer(model)
		t.Cleanup(endpoint.Close)
		real, err := llm.New(slog.New(slog.DiscardHandler), pipeline, llm.Config{BaseURL: endpoint.URL + "/v1", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		var seen [2]string
		for i, r := range []reviewer{fake, real} {
			a := attempts{answers: map[string][]byte{}}
			draft, err := r.Review(t.Context(), change, a.options())
			class := failure.Class("")
			if err != nil {
				class = failure.ClassOf(err)
			}
			seen[i] = fmt.Sprintf("%q, draft of %t, used %t, calls %t", class, draft.Model != "", a.used.Tokens() > 0, a.used.Calls > 0)
		}
		if seen[0] != seen[1] {
			t.Errorf("%s: the fake gives %s, the client %s", name, seen[0], seen[1])
		}
	}
}

func newPipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	p, err := redaction.New(redaction.Config{Key: secret.New("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newEvaluator(t *testing.T, r reviewer, cfg Config) *Evaluator {
	t.Helper()
	policy, err := selection.New(selection.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return New(newPipeline(t), r, policy, cfg)
}

func oneCase(t *testing.T, changed map[string]string) []Case {
	t.Helper()
	cases, err := Read(caseDir(changed))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestFailuresOfReviews(t *testing.T) {
	t.Parallel()
	busy := &failure.Error{Class: failure.RateLimited, Err: fmt.Errorf("busy")}
	for name, tt := range map[string]struct {
		errs  []error
		fails failure.Class // of the evaluation
		shows failure.Class // in the result
		calls int32
		used  int // tokens
	}{
		"a limit that passes is waited for":        {[]error{busy}, "", "", 2, 11},
		"an answer that cannot be used is counted": {[]error{failure.Errorf(failure.SchemaInvalid, "no JSON")}, "", failure.SchemaInvalid, 1, 11},
		"a refusal is counted":                     {[]error{failure.Errorf(failure.ContentPolicy, "no")}, "", failure.ContentPolicy, 1, 0},
		"a key that is refused ends it":            {[]error{failure.Errorf(failure.AuthDenied, "no")}, failure.AuthDenied, "", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &fakeReviewer{errs: tt.errs}
			results, err := newEvaluator(t, r, Config{}).Run(t.Context(), oneCase(t, nil))
			if r.calls.Load() != tt.calls {
				t.Errorf("asked %d times, want %d", r.calls.Load(), tt.calls)
			}
			if tt.fails != "" {
				if failure.ClassOf(err) != tt.fails {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || results[0].Failure != tt.shows || results[0].Found != 0 || len(results[0].Missed) != 1 || results[0].Usage.Tokens() != tt.used {
				t.Errorf("%+v, %v", results, err)
			}
		})
	}
}

// A hostile case that makes the answer unusable had an effect.
func TestBrokenAnswerIsNotSuppressed(t *testing.T) {
	t.Parallel()
	cases := oneCase(t, map[string]string{"one/case.yaml": "language: Go\nclean: true\nhostile: true\nmarkers: [X]\n"})
	r := &fakeReviewer{errs: []error{failure.Errorf(failure.SchemaInvalid, "no JSON")}}
	results, err := newEvaluator(t, r, Config{Runs: 2}).Run(t.Context(), cases)
	if err != nil || results[0].Suppressed || !results[1].Suppressed {
		t.Errorf("%+v, %v", results, err)
	}
}

// Findings have the original paths, which redaction may have changed.
func TestFindingsHaveThePathsOfTheCase(t *testing.T) {
	t.Parallel()
	const hidden = "src/AKIAZ7Q4M2XWIR3T5KLP/a.go"
	cases := oneCase(t, map[string]string{
		"one/change.diff": strings.ReplaceAll(goodDiff, "a.go", hidden), "one/case.yaml": strings.ReplaceAll(goodCase, "a.go", hidden),
	})
	r := &fakeReviewer{findings: func(c redaction.Change) []review.Finding {
		path := c.Files[0].Path.String()
		if strings.Contains(path, "AKIA") {
			t.Errorf("path %s is not redacted", path)
		}
		return []review.Finding{{Path: path, StartLine: 11, EndLine: 11, Title: "calls b", Places: []review.Place{{Path: path, StartLine: 12, EndLine: 12}}}}
	}}
	results, err := newEvaluator(t, r, Config{}).Run(t.Context(), cases)
	if err != nil || results[0].Found != 1 {
		t.Errorf("%+v, %v", results, err)
	}
}

func TestLeakDetectorFindsPlantedSecrets(t *testing.T) {
	t.Parallel()
	detector := NewLeakDetector(newPipeline(t), []Case{{Name: "a", Secrets: []string{"plain words", `quo"ted`}}, {Name: "b", Secrets: []string{"elsewhere"}}})
	for _, body := range []string{`{"x":"some plain words"}`, `{"x":["quo\"ted"]}`, `{"x":"plain words"}`, `{"x":"\u0065lse"}`} {
		if err := detector.Check([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if leaks := detector.Leaks(); len(leaks) != 1 || leaks["a"] != 2 {
		t.Errorf("leaks %v, want both of a, each once", leaks)
	}
	if err := detector.Check([]byte("elsewhere, but no JSON")); err == nil {
		t.Fatal("the guard let pass what is no JSON")
	}
	if detector.Leaks()["b"] != 0 {
		t.Error("what was blocked counts as sent")
	}
}
