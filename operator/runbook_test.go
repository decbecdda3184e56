package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

func runbook(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/runbook.md")
	noError(t, err)
	return string(text)
}

// The runbook lists every error class under its category, and every category has
// the five steps (processing 8.5).
func TestRunbookCoversEveryCategory(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	for section := range strings.SplitSeq(runbook(t), "\n### ") {
		title, body, _ := strings.Cut(section, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections[strings.ToLower(title)] = body
	}
	for _, d := range failure.Descriptions() {
		section := sections[string(d.Category)]
		if !strings.Contains(section, "`"+string(d.Class)+"`") {
			t.Errorf("%s is not in section %q", d.Class, d.Category)
		}
		for _, step := range []string{"Triage", "Remediate", "Validate", "Replay", "Verify"} {
			if !strings.Contains(section, "**"+step+".**") {
				t.Errorf("section %q has no step %s", d.Category, step)
			}
		}
	}
}

// Every command of the runbook is valid: without a configuration it fails with
// status 1, not with wrong usage.
func TestRunbookCommandsAreValid(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(runbook(t)) {
		rest, ok := strings.CutPrefix(line, "criticizer ")
		if !ok {
			continue
		}
		n++
		if got := say(t, nil, words(rest)...); got.status != 1 || !strings.Contains(got.err, "CRITICIZER_DATABASE_URL") {
			t.Errorf("criticizer %s: status %d, %s", rest, got.status, got.err)
		}
	}
	if n < 20 {
		t.Errorf("%d commands were found: this test no longer reads the page", n)
	}
}

// The runbook says where to begin with each alert.
func TestRunbookCoversEveryAlert(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../docs/deploy/alerts.yml")
	noError(t, err)
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 10 {
		t.Fatalf("%d alerts were found", len(alerts))
	}
	for _, alert := range alerts {
		if !strings.Contains(runbook(t), "`"+alert[1]+"`") {
			t.Errorf("docs/runbook.md lacks the alert %s", alert[1])
		}
	}
}
