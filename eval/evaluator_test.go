package eval

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// A fakeReviewer returns errs first, then findings.
type fakeReviewer struct {
	errs     []error
	findings func(c redaction.Change) []review.Finding
	calls    atomic.Int32
}

func (s *fakeReviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	n := int(s.calls.Add(1))
	if err := o.Budget.Settle(ctx, review.Grant{}, review.Usage{Calls: 1, PromptTokens: 10, CompletionTokens: 1}); err != nil {
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
	}{
		"a limit that passes is waited for":        {[]error{busy}, "", "", 2},
		"an answer that cannot be used is counted": {[]error{failure.Errorf(failure.SchemaInvalid, "no JSON")}, "", failure.SchemaInvalid, 1},
		"a refusal is counted":                     {[]error{failure.Errorf(failure.ContentPolicy, "no")}, "", failure.ContentPolicy, 1},
		"a key that is refused ends it":            {[]error{failure.Errorf(failure.AuthDenied, "no")}, failure.AuthDenied, "", 1},
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
			if err != nil || results[0].Failure != tt.shows || results[0].Found != 0 || len(results[0].Missed) != 1 || results[0].Usage.Tokens() != 11*int(tt.calls) {
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
