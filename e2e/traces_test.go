package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/criticizer/criticizer/llm/llmsim"
)

// A traceRecorder records spans that it receives over OTLP.
type traceRecorder struct {
	url string

	mu    sync.Mutex
	raw   bytes.Buffer
	spans []*trace.Span
}

func newTraceRecorder(t *testing.T) *traceRecorder {
	t.Helper()
	c := &traceRecorder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			http.Error(w, "not a trace", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, of := range sent.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// startCollector starts a real OpenTelemetry collector that sends the traces it receives on
// to url. It returns the collector's URL; stop returns when all traces have been sent on.
func startCollector(t *testing.T, url string) (collectorURL string, stop func()) {
	t.Helper()
	command := lookUp("../build/bin/collector")
	if command == "" {
		need(t, "there is no OpenTelemetry collector: run make build/bin/collector")
	}
	address, config := freeAddress(t), filepath.Join(t.TempDir(), "collector.yaml")
	writeFile(t, config, 0o600, fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, compression: none}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`, address, url))
	cmd, log := exec.Command(command, "--config="+config), new(syncBuffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	waitFor(t, "the collector", func() bool { return strings.Contains(log.String(), "Everything is ready") })
	return "http://" + address, func() {
		t.Helper()
		if err := interrupt(cmd); err != nil || strings.Contains(log.String(), "\terror\t") {
			t.Errorf("the collector ended with %v\n%s", err, log.String())
		}
	}
}

// One trace spans a review from its start to its notifications, as a real collector passes
// it on. Spans hold no path, no
// address and no text, not even of an error (security 9.3.3: telemetry holds no content).
func TestOneTracePerReview(t *testing.T) {
	t.Parallel()
	c := newTraceRecorder(t)
	in := newInstallation(t, newDepot(t, map[string]string{"private/plans.go": faulty}))
	in.configureWebhook()
	endpoint, stop := startCollector(t, c.url)
	in.env = append(in.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)
	worker := in.startWorker()
	in.inject(llmsim.Fault{Kind: llmsim.Unavailable, Times: 1})
	in.mustStart("--wait", "1")
	_ = interrupt(worker)
	stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string][]string{} // by trace
	for _, s := range c.spans {
		names[string(s.GetTraceId())] = append(names[string(s.GetTraceId())], s.GetName())
	}
	reviews := 0
	for _, spans := range names {
		if !slices.Contains(spans, "StartWorkflow:ReviewChangelist") {
			continue
		}
		reviews++
		for _, want := range []string{
			"RunWorkflow:ReviewChangelist", "RunActivity:Fetch", "RunActivity:Redact", "RunActivity:LLM",
			"RunActivity:Notify", "RunActivity:NotifyChannel", "RunActivity:FinishJob",
		} {
			if !slices.Contains(spans, want) {
				t.Errorf("the trace has no span %q: %q", want, spans)
			}
		}
	}
	if reviews != 1 {
		t.Errorf("%d traces of one review: %q", reviews, names)
	}
	for _, private := range []string{"//depot", "plans", "corp.test", "Change number", "alice", "a key of this test", "of-a-test"} {
		if strings.Contains(c.raw.String(), private) {
			t.Errorf("the traces contain %q", private)
		}
	}
	// As a word: the IDs of runs may hold these digits.
	if regexp.MustCompile(`\b503\b`).Match(c.raw.Bytes()) {
		t.Error("the traces contain the status of the model's error")
	}
}
