package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
)

// The runbook has an entry for each alert and each error class.
func TestRunbookCoversAlertsAndClasses(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile("../docs/runbook.md")
	testkit.NoError(t, err)
	rules, err := os.ReadFile("../docs/deploy/alerts.yml")
	testkit.NoError(t, err)
	var names []string
	for _, alert := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		names = append(names, alert[1])
	}
	if len(names) < 10 {
		t.Fatalf("%d alerts were found", len(names))
	}
	for _, d := range failure.Descriptions() {
		names = append(names, string(d.Class))
	}
	for _, name := range names {
		if !strings.Contains(string(runbook), "`"+name+"`") {
			t.Errorf("docs/runbook.md lacks %s", name)
		}
	}
}
