package telemetry

import (
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

// series returns the series of a scrape, without those of the Go runtime.
func series(t *testing.T, m *Metrics) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	var all []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "temporal_") || strings.HasPrefix(line, "criticizer_") {
			all = append(all, line)
		}
	}
	return all
}

// tagged returns a handler with the tags that the SDK adds in an activity.
func tagged(m *Metrics, queue, activity string) client.MetricsHandler {
	return m.Handler().WithTags(map[string]string{
		"namespace": "n", "client_name": "temporal_go", "worker_type": "ActivityWorker",
		"workflow_type": "W", "activity_type": activity, "task_queue": queue,
	})
}

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := NewMetrics(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOurMetricsHaveNoSDKLabels(t *testing.T) {
	t.Parallel()
	m := newMetrics(t)
	for _, activity := range []string{"Redact", "LLM"} {
		ours := tagged(m, "criticizer-llm", activity).WithTags(map[string]string{"stage": "llm", "result": "ok"})
		ours.Timer("criticizer_attempt").Record(7 * time.Second)
	}
	got := series(t, m)
	if want := `criticizer_attempt_seconds_count{result="ok",stage="llm"} 2` + "\n"; !slices.Contains(got, want) || len(got) != len(buckets)+3 {
		t.Errorf("%d series, want %d and among them %sgot %s", len(got), len(buckets)+3, want, got)
	}
}

// The number of series does not multiply by queues, activities and operations.
func TestSDKMetricsHaveFewSeries(t *testing.T) {
	t.Parallel()
	m := newMetrics(t)
	queues := strings.Fields("a b c d e f g h i j")
	for _, queue := range queues {
		for _, name := range queues {
			h := tagged(m, queue, name).WithTags(map[string]string{"operation": name})
			for _, timer := range []string{"request_latency", "request_latency_attempt", "long_request_latency", "activity_execution_latency", "activity_schedule_to_start_latency", "local_activity_execution_latency", "workflow_endtoend_latency"} {
				h.Timer("temporal_" + timer).Record(time.Second)
			}
			for _, counter := range []string{"request", "request_attempt", "worker_start", "poller_start"} {
				h.Counter("temporal_" + counter).Inc(1)
			}
			h.Gauge("temporal_worker_task_slots_available").Update(3)
		}
	}
	got := series(t, m)
	// Operations, request latency, latency of each queue, slots of each queue.
	if want := 10 + len(requestBuckets) + 3 + 10*3 + 10; len(got) != want {
		t.Errorf("%d series, want %d:\n%s", len(got), want, strings.Join(got, ""))
	}
	for _, want := range []string{
		`temporal_request_total{operation="a"} 10`, `temporal_request_latency_seconds_bucket{le="1"} 100`,
		`temporal_activity_schedule_to_start_latency_seconds_sum{task_queue="a"} 10`,
		`temporal_worker_task_slots_available{task_queue="a",worker_type="ActivityWorker"} 3`,
	} {
		if !slices.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, strings.Join(got, ""))
		}
	}
}
