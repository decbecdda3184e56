package llm_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// These tests attack the guard from another package: only text that the current
// pipeline made may be sent (security 9.5.5).

func pipeline(t *testing.T, cfg redaction.Config) *redaction.Pipeline {
	t.Helper()
	cfg.Key = secret.New("a key for tests, not a secret")
	p, err := redaction.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func change(t *testing.T, p *redaction.Pipeline) redaction.Change {
	t.Helper()
	c, err := p.Change(review.Change{
		Number: 4711, User: "ann", Description: "Write to bob@corp.example\n",
		Files: []review.File{{DepotPath: "//depot/a.c", Action: review.ActionEdit, Type: "text", Diff: "@@ -1 +1 @@\n-int a;\n+int b;\n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reviewBehind reviews c behind guard and returns the number of sent requests.
func reviewBehind(t *testing.T, guard *redaction.Pipeline, c redaction.Change, model string) (requests int, err error) {
	t.Helper()
	sim := llmsim.New(llmsim.Config{})
	server := httptest.NewServer(sim)
	defer server.Close()
	cfg := config.Default[llm.Config]()
	cfg.BaseURL, cfg.Model = server.URL+"/v1", model
	r, err := llm.New(slog.New(slog.DiscardHandler), guard, cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Review(t.Context(), c, review.Options{})
	return sim.Stats().Calls, err
}

func TestGuardLetsPassWhatItsPipelineMade(t *testing.T) {
	t.Parallel()
	p := pipeline(t, redaction.Config{})
	sealed, err := p.Seal(change(t, p))
	if err != nil {
		t.Fatal(err)
	}
	unsealed, err := pipeline(t, redaction.Config{}).Unseal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]redaction.Change{"fresh": change(t, p), "stored and read again": unsealed} {
		if n, err := reviewBehind(t, p, c, "m"); n != 1 || err != nil {
			t.Errorf("%s: %d requests, error %v", name, n, err)
		}
	}
}

// After a bypass, a detector error or a parser error nothing is sent
// (security 9.5.5).
func TestGuardBlocksWhatItsPipelineDidNotMake(t *testing.T) {
	t.Parallel()
	current := pipeline(t, redaction.Config{Emails: true})
	token := "AK" + "IA" + "6YPUJNNVRAD7FMJM"
	mixed := change(t, current)
	mixed.Description = change(t, pipeline(t, redaction.Config{})).Description
	mixedFile := change(t, current)
	mixedFile.Files = append(mixedFile.Files, change(t, pipeline(t, redaction.Config{})).Files...)
	action := change(t, current)
	action.Files[0].Action = review.Action(token)
	for name, test := range map[string]struct {
		guard  *redaction.Pipeline
		change redaction.Change
		model  string
	}{
		"bypass: a change of another policy":       {current, change(t, pipeline(t, redaction.Config{})), "m"},
		"bypass: of other rules":                   {current, change(t, pipeline(t, redaction.Config{Emails: true, Rules: "token corp-token corp_{alnum:20+} corp_9tMDf9jQ5vxV1UN1qKy88ySi"})), "m"},
		"bypass: one text of another policy":       {current, mixed, "m"},
		"bypass: one file of another policy":       {current, mixedFile, "m"},
		"bypass: text where a p4 action should be": {current, action, "m"},
		"bypass: a secret in the configuration":    {current, change(t, current), token},
		"detector error: no rules":                 {&redaction.Pipeline{}, change(t, current), "m"},
		"detector error: no pipeline":              {nil, change(t, current), "m"},
		"limit: the request is too large to check": {pipeline(t, redaction.Config{MaxBytes: 500}), change(t, pipeline(t, redaction.Config{MaxBytes: 500})), "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := reviewBehind(t, test.guard, test.change, test.model)
			if failure.ClassOf(err) != failure.RedactionBlocked || n != 0 {
				t.Fatalf("%d requests left, error %v: want none and class %s", n, err, failure.RedactionBlocked)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error shows what was blocked: %v", err)
			}
		})
	}
}
