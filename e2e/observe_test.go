package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// listen has the worker answer on an address of its own, which it returns.
func (in *installation) listen() (url string) {
	in.t.Helper()
	address := freeAddress(in.t)
	in.env = append(in.env, "CRITICIZER_WORKER_LISTEN="+address)
	return "http://" + address
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// page gets a page, and status 0 while nobody answers.
func httpGet(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// A scrape is what a worker answered to one.
type scrape map[string]*dto.MetricFamily

func (in *installation) scrape(url string) scrape {
	in.t.Helper()
	_, body := httpGet(in.t, url+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewBufferString(body))
	if err != nil {
		in.t.Fatalf("scraped what is no metrics: %v\n%s", err, body)
	}
	return families
}

// value sums up the series of a metric that have all the labels, written
// name=value: the value of a gauge or counter, the count of a histogram.
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

// A worker tells what it did and what waits, and in no label whose it is.
func TestWorkerTellsItsFigures(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2c3", 6)
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty + "\nconst token = \"" + secret + "\"\n"}, map[string]string{"b.go": clean}))
	in.disableBreaker()
	in.env = append(in.env, "CRITICIZER_WORKER_MAX_IN_FLIGHT_PER_PATH=//depot/other/... 4, //depot/... 3")
	url := in.listen()
	in.startWorker()
	waitFor(t, "readiness", func() bool { status, _ := httpGet(t, url+"/readyz"); return status == http.StatusOK })
	if status, body := httpGet(t, url+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable, Times: 1}); err != nil {
		t.Fatal(err)
	}
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
		{"criticizer_slots", []string{"limit=2"}, 3},
		{"criticizer_slots_taken", []string{"limit=2"}, 0},
		{"criticizer_slots_awaited", []string{"limit=2"}, 0},
		{"criticizer_reviews", []string{"state=succeeded"}, 1},
		{"criticizer_reviews", []string{"state=dead_lettered"}, 1},
		{"criticizer_review_oldest_seconds", nil, 0},
		{"criticizer_dead_letters", []string{"state=open", "stage=llm", "class=AUTH_DENIED"}, 1},
		{"criticizer_dead_letters_escalated", nil, 0},
		{"criticizer_deliveries", []string{"status=sent"}, 1},
		{"criticizer_outbox_depth", nil, 0},
		{"criticizer_outbox_oldest_seconds", nil, 0},
		{"criticizer_deliveries_ambiguous", nil, 0},
		{"criticizer_deliveries_confirmed", nil, 0},
		{"criticizer_retention_lag_seconds", []string{"namespace=raw"}, 0},
		{"criticizer_breaker_open", []string{"queue=" + activities.QueueLLM}, 0},
		{"criticizer_queue_depth", []string{"queue=" + activities.QueueLLM}, 0},
		{"criticizer_queue_depth", []string{"queue=" + activities.QueueBookkeeping}, 0},
		{"criticizer_queue_oldest_seconds", []string{"queue=" + activities.QueueLLM}, 0},
		{"temporal_request_total", nil, 1},
	} {
		if value, found := got.value(want.name, want.labels...); !found || value < want.min {
			t.Errorf("%s%v is %v (%t), want at least %v", want.name, want.labels, value, found, want.min)
		}
	}
	got.checkLabels(t)
	got.checkSeriesCount(t)
	got.checkDocumented(t)
	in.checkOneWarning("1", "UPSTREAM_UNAVAILABLE", "answered 503")
	in.checkOneWarning("2", "AUTH_DENIED", "does not accept the API key")
}

// A review that no worker has begun is not in Postgres yet, and on the screen all the
// same: else all would look idle while nobody serves workflows.
func TestTopShowsReviewsThatNobodyBegins(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.mustStart("1")
	waitFor(t, "the review in the overview", func() bool {
		var now struct {
			Stages []struct {
				Stage   string
				Waiting int
			}
		}
		if err := json.Unmarshal([]byte(in.criticizer("top", "--json")), &now); err != nil {
			t.Fatal(err)
		}
		return now.Stages[0].Stage == "workflows" && now.Stages[0].Waiting > 0
	})
}

// wantFewSeries checks that a worker of all stages tells no more than what
// docs/observability.md says: whoever scrapes it pays for each series.
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
		t.Errorf("the worker tells %d series, want 400 at most", series)
	}
}

// wantOneLine checks that the worker logged the one failed attempt of a changelist
// in a line, and what it failed of.
func (in *installation) checkOneWarning(cl, class, reason string) {
	in.t.Helper()
	about := 0
	for line := range strings.Lines(in.log.String()) {
		var output map[string]any
		if json.Unmarshal([]byte(line), &output) != nil || output["workflow_id"] != "review-p4-"+cl+"-v1" || output["level"] != "WARN" {
			continue
		}
		about++
		if text, _ := output["error"].(string); output["error_class"] != class || !strings.Contains(text, reason) || output["stage"] != "critique" || output["attempt"] != 1.0 {
			in.t.Errorf("of changelist %s the worker said %s", cl, line)
		}
	}
	if about != 1 {
		in.t.Errorf("%d warnings are about changelist %s, want 1 in\n%s", about, cl, in.log)
	}
}

// wantFewLabels checks that no label tells of one review, person or file: then
// there would be ever more series.
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

// The breaker is told as Temporal has it, whichever worker is asked.
func TestBreakerIsTold(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	url := in.listen()
	in.startWorker()
	open := func() float64 {
		value, _ := in.scrape(url).value("criticizer_breaker_open", "queue="+activities.QueueLLM)
		return value
	}
	in.criticizer("breaker", "open", "llm", "--reason", "INC-7: maintenance")
	waitFor(t, "the gauge of an open breaker", func() bool { return open() == 1 })
	var now struct {
		Stages []struct {
			Stage string `json:"stage"`
			Open  bool   `json:"breaker_open"`
		} `json:"stages"`
	}
	if err := json.Unmarshal([]byte(in.criticizer("top", "--json")), &now); err != nil {
		t.Fatal(err)
	}
	for _, s := range now.Stages {
		if s.Open != (s.Stage == "llm") {
			t.Errorf("top shows the circuit breaker of stage %s as open: %t", s.Stage, s.Open)
		}
	}
	in.criticizer("breaker", "close", "llm")
	waitFor(t, "the gauge of a closed breaker", func() bool { return open() == 0 })
}

// A worker that cannot work says so, and why, while it lives.
func TestReadinessNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	url := in.listen()
	in.startWorker()
	waitFor(t, "readiness", func() bool { status, _ := httpGet(t, url+"/readyz"); return status == http.StatusOK })
	begin, end := outageOf(t, in.database)
	begin()
	status, body := httpGet(t, url+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "database") {
		t.Errorf("without the database: %d %q", status, body)
	}
	if status, _ := httpGet(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d without the database", status)
	}
	if up, found := in.scrape(url).value("criticizer_source_up", "source=postgres"); up != 0 || !found {
		t.Errorf("criticizer_source_up of postgres is %v (%t)", up, found)
	}
	end()
	waitFor(t, "readiness", func() bool { status, _ := httpGet(t, url+"/readyz"); return status == http.StatusOK })
}

func TestListenAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	in.env = append(in.env, fmt.Sprintf("CRITICIZER_WORKER_LISTEN=%s", taken.Addr()))
	worker := in.startWorker()
	if err := worker.Wait(); err == nil || !strings.Contains(in.log.String(), "worker.listen") {
		t.Errorf("worker ended with %v and %q, want the field that names the address", err, in.log)
	}
}
