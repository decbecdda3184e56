package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

var (
	shownCode     = regexp.MustCompile(`check-code: ([0-9a-f]{8})\b`)
	shownFile     = regexp.MustCompile(`(?m)^file (//.+) \([^()]*\)$`)
	shownBackdoor = regexp.MustCompile(`(?m)^\s*(\d+) \+ (.*(?:letmein_backdoor|evil\.example|uid==0x2a|_GET\[c1\]).*)$`)
)

// reportBackdoors is a model that reports every backdoor that it is shown.
func reportBackdoors(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Messages []struct{ Content string } }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	text := ""
	for _, m := range asked.Messages {
		text += m.Content + "\n"
	}
	codes, findings := []string{}, []map[string]any{}
	for _, m := range shownCode.FindAllStringSubmatch(text, -1) {
		codes = append(codes, m[1])
	}
	for _, at := range shownBackdoor.FindAllStringSubmatchIndex(text, -1) {
		files := shownFile.FindAllStringSubmatch(text[:at[0]], -1)
		findings = append(findings, map[string]any{
			"path": files[len(files)-1][1], "quote": text[at[4]:at[5]], "line": 1, "trigger": "any", "explanation": "Planted.", "category": "security",
			"severity": "critical", "confidence": 0.9, "title": "Backdoor", "suggestion": "", "replacement": "",
		})
	}
	answer, _ := json.Marshal(map[string]any{"codes": codes, "findings": findings, "verdicts": []any{}})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "x", "object": "chat.completion", "model": "m", "usage": map[string]int{"prompt_tokens": len(text) / 4, "completion_tokens": 20},
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": string(answer)}}},
	})
}

// An author hides code from the reviewer in every way that testdata/attacks.txtar knows. The
// model reports what it is shown, so a clean review is one in which the product hid it.
func TestAttacksNeverEndClean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "p4")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../p4/p4sim").CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in p4: %v\n%s", err, out)
	}
	depot, err := filepath.Abs("testdata/attacks.txtar")
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "p4sim.conf"), fmt.Appendf(nil, "P4SIM_DEPOT=%s\nP4SIM_STATE=%s/sim\n", depot, dir), 0o600))
	model := httptest.NewServer(http.HandlerFunc(reportBackdoors))
	t.Cleanup(model.Close)

	credits := map[review.Changelist]review.Credit{}
	source := config.Default[p4.Config]()
	source.Command, source.Port, source.User, source.StateDir = program, "ssl:sim:1666", "criticizer", filepath.Join(dir, "state")
	source.Allowed, source.MaxFileBytes = []string{"//depot/..."}, 20_000
	source.Reviewed = func(_ context.Context, changes []review.Changelist) (map[review.Changelist]review.Credit, error) {
		known := map[review.Changelist]review.Credit{}
		for _, cl := range changes {
			known[cl] = credits[cl]
		}
		return known, nil
	}
	fetcher, err := p4.New(quiet, source)
	testkit.NoError(t, err)
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
	testkit.NoError(t, err)
	endpoint := config.Default[llm.Config]()
	endpoint.BaseURL, endpoint.APIKey, endpoint.Model = model.URL+"/v1", secret.New("k"), "m"
	reviewer, err := llm.New(quiet, pipeline, endpoint)
	testkit.NoError(t, err)

	text, err := os.ReadFile(depot)
	testkit.NoError(t, err)
	attacks := 0
	for i, m := range regexp.MustCompile(`(?m)^-- change \d+ user=\w+ --\n(.*)$`).FindAllStringSubmatch(string(text), -1) {
		cl := review.Changelist(i + 1)
		change, err := fetcher.Read(t.Context(), cl, review.ReadOptions{})
		testkit.NoError(t, err)
		redacted, err := pipeline.Change(change)
		testkit.NoError(t, err)
		draft, err := reviewer.Review(t.Context(), redacted, review.Options{})
		testkit.NoError(t, err)
		report := review.Report{Coverage: draft.Coverage, Gaps: redacted.Gaps, Findings: draft.Findings, Record: draft.Record}
		for _, f := range redacted.Files {
			report.Findings = append(report.Findings, f.Open...)
		}
		outcome, why := report.Judge()
		harmless := strings.HasPrefix(m[1], "harmless")
		if (outcome == review.OutcomeClean) != harmless {
			t.Errorf("change %d, %s: %s %s; %s %s", cl, m[1], outcome, why, report.Tally().Text(), report.Tally().Aside())
		}
		if !harmless {
			attacks++
		}
		credit := review.Credit{Read: outcome == review.OutcomeClean || outcome == review.OutcomeFindings}
		for _, f := range report.Findings {
			credit.Findings = append(credit.Findings, review.CreditedFinding{
				Origin: review.Origin{Changelist: cl, Version: 1, Fingerprint: f.Fingerprint()}, Others: f.Fingerprints()[1:],
				Path: f.Path, Category: f.Category, Severity: f.Severity, Verbatim: f.IsVerbatim(),
			})
		}
		credits[cl] = credit
	}
	if attacks < 40 {
		t.Errorf("%d attacks", attacks)
	}
}
