package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var prometheusAddress = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startPrometheus starts a Prometheus that loads the alert rules of docs/deploy and
// scrapes /metrics of each target. It returns the URL of its API.
func startPrometheus(t *testing.T, targets ...string) (api string) {
	t.Helper()
	command := program(t, "prometheus", "prometheus")
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "alerts.yml"), 0o600, readFile(t, "../docs/deploy/alerts.yml"))
	writeFile(t, filepath.Join(dir, "prometheus.yml"), 0o600, "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yml]\n"+
		"scrape_configs:\n  - job_name: criticizer\n    static_configs:\n      - targets: ['"+strings.Join(targets, "', '")+"']\n")
	cmd := exec.Command(command, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:0")
	log := new(syncBuffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var address []string
	waitFor(t, "Prometheus", func() bool {
		address = prometheusAddress.FindStringSubmatch(log.String())
		return address != nil
	})
	return "http://" + address[1] + "/api/v1/"
}

// askPrometheus decodes the data of a page of Prometheus's API. It returns the answer if
// that is an error, otherwise "".
func askPrometheus(t *testing.T, page string, data any) (failed string) {
	t.Helper()
	status, body := httpGet(t, page)
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || answer.Status != "success" {
		return body
	}
	return ""
}

// panelQueries returns the queries of the dashboard, with the interval that Grafana
// would insert.
func panelQueries(t *testing.T) (queries []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "../docs/deploy/dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	return queries
}

// checkPrometheus lets a real Prometheus scrape the worker at url and the metrics of a
// drained spool, evaluate each alert rule and answer each query of the dashboard. A
// review of the worker must be dead-lettered with AUTH_DENIED.
func (in *installation) checkPrometheus(t *testing.T, worker string) {
	t.Helper()
	spool := filepath.Join(t.TempDir(), "spool.prom")
	in.output("starter", "drain", "--metrics", spool)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, spool) }))
	defer host.Close()
	api := startPrometheus(t, strings.TrimPrefix(worker, "http://"), strings.TrimPrefix(host.URL, "http://"))

	type rule struct{ Name, Health, LastError, State string }
	var rules []rule
	waitFor(t, "the evaluation of all alert rules", func() bool {
		var all struct{ Groups []struct{ Rules []rule } }
		if failed := askPrometheus(t, api+"rules", &all); failed != "" {
			return false
		}
		rules = nil
		evaluated, denied := true, false
		for _, group := range all.Groups {
			for _, r := range group.Rules {
				rules = append(rules, r)
				evaluated = evaluated && r.Health != "unknown"
				denied = denied || r.Name == "CriticizerDenied" && r.State == "firing"
			}
		}
		return len(rules) > 0 && evaluated && denied
	})
	if want := strings.Count(readFile(t, "../docs/deploy/alerts.yml"), "- alert:"); len(rules) != want {
		t.Errorf("Prometheus has %d rules, want %d", len(rules), want)
	}
	for _, r := range rules {
		if r.Health != "ok" {
			t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
	for _, expression := range panelQueries(t) {
		if strings.Contains(expression, "complaint_rewrite_") { // the worker does not serve stage rewrite
			expression += " or vector(0)"
		}
		failed := ""
		if !poll(testTimeout, 100*time.Millisecond, func() bool {
			var result struct{ Result []any }
			failed = askPrometheus(t, api+"query?query="+url.QueryEscape(expression), &result)
			return failed != "" || len(result.Result) > 0
		}) {
			t.Fatalf("the dashboard's query %s has no data", expression)
		}
		if failed != "" {
			t.Errorf("the dashboard's query %s: %s", expression, failed)
		}
	}
}
