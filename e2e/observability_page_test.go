package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var metricName = regexp.MustCompile(`criticizer_[a-z_]+`)

// documented are the metrics of the tables in docs/observability.md.
func documented(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(readFile(t, "../docs/observability.md")) {
		if strings.HasPrefix(line, "| `criticizer_") {
			names = append(names, metricName.FindString(line))
		}
	}
	return names
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// wantDocumented checks that a worker tells what the page lists, and lists what
// it tells.
func (s scrape) checkDocumented(t *testing.T) {
	t.Helper()
	names := documented(t)
	for _, name := range names {
		if s[name] == nil && !strings.HasPrefix(name, "criticizer_rewrite_") { // those are of a stage that is not served by itself
			t.Errorf("docs/observability.md lists %s, and the worker does not tell it", name)
		}
	}
	page := readFile(t, "../docs/observability.md")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		known := slices.Contains(names, name) || strings.HasPrefix(name, "temporal_") && strings.Contains(page, "`"+name+"`")
		if !known && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("the worker tells %s, and docs/observability.md does not list it", name)
		}
	}
}

// Dashboard and alert rules ask only for what is exported.
func TestDashboardAndRulesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	names := documented(t)
	for _, file := range []string{"../docs/deploy/dashboard.json", "../docs/deploy/alerts.yml"} {
		body := readFile(t, file)
		asked := metricName.FindAllString(body, -1)
		if len(asked) == 0 {
			t.Errorf("%s asks for nothing", file)
		}
		for _, name := range asked {
			of := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count") // series of a histogram
			if !slices.Contains(names, name) && !slices.Contains(names, of) {
				t.Errorf("%s asks for %s, which is not exported", file, name)
			}
		}
		for _, name := range names {
			if strings.HasSuffix(file, ".json") && name != "criticizer_model_calls_total" && !strings.Contains(body, name) {
				t.Errorf("%s does not show %s", file, name)
			}
		}
	}
	if !json.Valid([]byte(readFile(t, "../docs/deploy/dashboard.json"))) {
		t.Error("the dashboard is no JSON")
	}
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED, no promtool on PATH: Debian's package prometheus has it")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "../docs/deploy/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
