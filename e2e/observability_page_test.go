package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var metricName = regexp.MustCompile(`criticizer_[a-z_]+`)

// documented lists the metrics of docs/observability.md.
func documented(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(readFile(t, "../docs/observability.md")) {
		if strings.HasPrefix(line, "- `criticizer_") {
			names = append(names, metricName.FindString(line))
		}
	}
	return names
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

// checkDocumented checks that a worker exports exactly the documented metrics.
func (s scrape) checkDocumented(t *testing.T) {
	t.Helper()
	names := documented(t)
	for _, name := range names {
		if s[name] == nil && !strings.HasPrefix(name, "complaint_rewrite_") && !strings.HasPrefix(name, "criticizer_spool_") { // the worker does not serve stage rewrite
			t.Errorf("docs/observability.md lists %s, which the worker does not export", name)
		}
	}
	page := readFile(t, "../docs/observability.md")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		known := slices.Contains(names, name) || strings.HasPrefix(name, "temporal_") && strings.Contains(page, "`"+name+"`")
		if !known && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("the worker exports %s, which docs/observability.md does not list", name)
		}
	}
}

// Dashboard and alert rules use only exported metrics, and the dashboard shows all.
func TestDashboardAndRulesUseExportedMetrics(t *testing.T) {
	t.Parallel()
	names := documented(t)
	for _, file := range []string{"../docs/deploy/dashboard.json", "../docs/deploy/alerts.yml"} {
		body := readFile(t, file)
		used := metricName.FindAllString(body, -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metric", file)
		}
		for _, name := range used {
			histogram := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count") // series of a histogram
			if !slices.Contains(names, name) && !slices.Contains(names, histogram) {
				t.Errorf("%s uses %s, which is not exported", file, name)
			}
		}
		for _, name := range names {
			if strings.HasSuffix(file, ".json") && name != "criticizer_model_calls_total" && !strings.Contains(body, name) {
				t.Errorf("%s does not show %s", file, name)
			}
		}
	}
	if !json.Valid([]byte(readFile(t, "../docs/deploy/dashboard.json"))) {
		t.Error("the dashboard is not JSON")
	}
}
