package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// listen sets the address of the worker's HTTP server and returns its URL.
func (in *installation) listen() (url string) {
	in.t.Helper()
	address := freeAddress(in.t)
	in.env = append(in.env, "CRITICIZER_WORKER_LISTEN="+address)
	return "http://" + address
}

// httpGet returns status 0 if the server cannot be reached.
func httpGet(tb testing.TB, url string) (status int, body string) {
	tb.Helper()
	response, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// A scrape holds the metrics of a worker by name.
type scrape map[string]*dto.MetricFamily

func (in *installation) scrape(url string) scrape {
	in.t.Helper()
	_, body := httpGet(in.t, url+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewBufferString(body))
	if err != nil {
		in.t.Fatalf("parse metrics: %v\n%s", err, body)
	}
	return families
}

// value sums the series of a metric that have all the labels, written name=value. The
// value of a histogram is its count.
func (s scrape) value(name string, labels ...string) (sum float64, found bool) {
	for _, m := range s[name].GetMetric() {
		have := map[string]bool{}
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		missing := false
		for _, l := range labels {
			missing = missing || !have[l]
		}
		if !missing {
			found = true
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum, found
}

// A worker exports the documented metrics, with labels that name no review, person or
// file, and logs each failed attempt once.
func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2c3", 6)
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty + "\nconst token = \"" + secret + "\"\n", "long.txt": strings.Repeat("word ", 1000)}, map[string]string{"b.go": clean}))
	url := in.listen()
	in.startWorker()
	waitFor(t, "readiness", func() bool { status, _ := httpGet(t, url+"/readyz"); return status == http.StatusOK })
	if status, body := httpGet(t, url+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	in.inject(llmsim.Fault{Kind: llmsim.Unavailable, Times: 1})
	in.mustStart("--wait", "1")
	in.rejectKey(1)
	in.deadLetter("2", failure.AuthDenied)
	got := in.scrape(url)
	for _, want := range []struct {
		name   string
		labels []string
		min    float64
	}{
		{"criticizer_attempt_seconds", []string{"stage=fetch", "result=ok"}, 2},
		{"criticizer_attempt_seconds", []string{"stage=llm", "result=ok"}, 1},
		{"criticizer_attempt_seconds", []string{"stage=llm", "result=UPSTREAM_UNAVAILABLE"}, 1},
		{"criticizer_attempt_seconds", []string{"stage=llm", "result=AUTH_DENIED"}, 1},
		{"criticizer_stage_seconds", []string{"stage=notify"}, 1},
		{"criticizer_redactions_total", nil, 1},
		{"criticizer_model_calls_total", nil, 1},
		{"criticizer_model_tokens_total", []string{"kind=prompt"}, 1},
		{"criticizer_model_tokens_total", []string{"kind=completion"}, 1},
		{"criticizer_source_up", []string{"source=postgres"}, 1},
		{"criticizer_source_up", []string{"source=temporal"}, 1},
		{"criticizer_reviews", []string{"state=succeeded"}, 1},
		{"criticizer_reviews", []string{"state=retryable_failed"}, 1},
		{"criticizer_review_oldest_seconds", nil, 0},
		{"criticizer_dead_letters", []string{"state=open", "stage=llm", "class=AUTH_DENIED"}, 1},
		{"criticizer_dead_letters_escalated", nil, 0},
		{"criticizer_deliveries", []string{"status=sent"}, 1},
		{"criticizer_outbox_depth", nil, 0},
		{"criticizer_outbox_oldest_seconds", nil, 0},
		{"criticizer_deliveries_ambiguous", nil, 0},
		{"criticizer_deliveries_confirmed", nil, 0},
		{"criticizer_retention_lag_seconds", []string{"namespace=raw"}, 0},
		{"criticizer_breaker_open", []string{"queue=" + contract.QueueLLM}, 0},
		{"criticizer_queue_depth", []string{"queue=" + contract.QueueLLM}, 0},
		{"criticizer_queue_depth", []string{"queue=" + contract.QueueBookkeeping}, 0},
		{"criticizer_queue_oldest_seconds", []string{"queue=" + contract.QueueLLM}, 0},
		{"temporal_request_total", nil, 1},
	} {
		if value, found := got.value(want.name, want.labels...); !found || value < want.min {
			t.Errorf("%s%v is %v (%t), want at least %v", want.name, want.labels, value, found, want.min)
		}
	}
	got.checkLabels(t)
	got.checkSeriesCount(t)
	got.checkDocumented(t)
	in.checkOneWarning("1", failure.UpstreamUnavailable)
	in.checkOneWarning("2", failure.AuthDenied)
	t.Run("in Prometheus", func(t *testing.T) { in.checkPrometheus(t, url) })
}

// checkSeriesCount limits the number of series:
// each one costs memory in the monitoring system.
func (s scrape) checkSeriesCount(t *testing.T) {
	t.Helper()
	series := 0
	for _, family := range s {
		for _, m := range family.GetMetric() {
			series++
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 1
			}
			series += len(m.GetSummary().GetQuantile())
		}
	}
	t.Logf("%d series", series)
	if series > 400 {
		t.Errorf("the worker exports %d series, want at most 400", series)
	}
}

// checkOneWarning checks that the worker logged the failed attempt of a changelist in one
// line with its class.
func (in *installation) checkOneWarning(cl string, class failure.Class) {
	in.t.Helper()
	warnings := 0
	for line := range strings.Lines(in.log.String()) {
		var record struct {
			Level      string
			WorkflowID string        `json:"workflow_id"`
			ErrorClass failure.Class `json:"error_class"`
			Error      string
			Stage      string
			Attempt    int
		}
		if json.Unmarshal([]byte(line), &record) != nil || record.WorkflowID != "review-p4-"+cl+"-v1" || record.Level != "WARN" {
			continue
		}
		warnings++
		if record.ErrorClass != class || record.Error == "" || record.Stage != "llm" || record.Attempt != 1 {
			in.t.Errorf("changelist %s: the worker logged %s", cl, line)
		}
	}
	if warnings != 1 {
		in.t.Errorf("changelist %s has %d warnings, want 1 in\n%s", cl, warnings, in.log)
	}
}

// checkLabels checks that no label names a review, person or file: the number of series
// would grow without limit.
func (s scrape) checkLabels(t *testing.T) {
	t.Helper()
	for name, family := range s {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if v := l.GetValue(); strings.Contains(v, "review-p4") || strings.Contains(v, "//") || strings.Contains(v, "corp.test") {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), v)
				}
			}
		}
	}
}

// A worker exports the state of its circuit breakers, and operators see why reviews wait.
func TestBreakerMetric(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(4)...))
	url := in.listen()
	in.inject(llmsim.Fault{Kind: llmsim.InvalidKey})
	in.startWorker()
	for n := range 4 {
		in.mustStart(strconv.Itoa(n + 1))
	}
	open := func() float64 {
		value, _ := in.scrape(url).value("criticizer_breaker_open", "queue="+contract.QueueLLM)
		return value
	}
	waitFor(t, "the gauge of an open breaker", func() bool { return open() == 1 })
	var now struct {
		Stages []struct {
			Stage   string         `json:"stage"`
			Outages []store.Outage `json:"outages"`
		} `json:"stages"`
	}
	waitFor(t, "the outage", func() bool { return in.breakerOpen("llm") })
	in.criticizerJSON(&now, "top")
	for _, s := range now.Stages {
		if len(s.Outages) > 0 != (s.Stage == "llm") {
			t.Errorf("top shows the outages of stage %s: %+v", s.Stage, s.Outages)
		}
	}
	shown := ""
	for n := range 4 {
		shown += in.criticizer("status", strconv.Itoa(n+1))
	}
	if !strings.Contains(shown, "breaker of stage llm: open for") || !strings.Contains(shown, "AUTH_DENIED") {
		t.Errorf("status does not name the outage:\n%s", shown)
	}
	if found, _ := in.doctor(nil); !slices.ContainsFunc(found, func(d diagnosis) bool { return d.Check == "breakers" && d.Status == "warn" }) {
		t.Errorf("doctor does not warn of the outage: %+v", found)
	}
	in.model.ClearFaults()
	waitFor(t, "the gauge of a closed breaker", func() bool { return open() == 0 })
	in.waitForClosedBreaker("llm")
}
