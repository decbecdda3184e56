package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
)

// The Temporal SDK adds six labels to every metric and has about forty metrics of its
// own: thousands of series per worker. We export only those that our own metrics do
// not cover (docs/observability.md); a test limits their number.

// buckets, in seconds, cover queries as well as stages that waited for an outage.
var buckets = []float64{0.05, 0.2, 1, 5, 15, 30, 60, 120, 600, 3600}

// requestBuckets, in seconds, are for requests to Temporal.
var requestBuckets = []float64{0.01, 0.1, 1, 10}

// withoutSDKLabels keeps the labels that we add to our own metrics.
var withoutSDKLabels = attribute.NewDenyKeysFilter("namespace", "client_name", "worker_type", "workflow_type", "activity_type", "task_queue")

// A kept describes an exported metric of the SDK: its labels and, for a histogram, its
// buckets. A histogram without buckets has a sum and a count.
type kept struct {
	labels  []attribute.Key
	buckets []float64
}

var sdkMetrics = map[string]kept{
	"temporal_request":                                 {labels: []attribute.Key{"operation"}},
	"temporal_request_failure":                         {labels: []attribute.Key{"operation", "status_code"}},
	"temporal_request_latency":                         {buckets: requestBuckets},
	"temporal_long_request_failure":                    {labels: []attribute.Key{"operation", "status_code"}},
	"temporal_activity_schedule_to_start_latency":      {labels: []attribute.Key{"task_queue"}},
	"temporal_workflow_task_schedule_to_start_latency": {},
	"temporal_workflow_task_execution_failed":          {labels: []attribute.Key{"failure_reason"}},
	"temporal_worker_task_slots_available":             {labels: []attribute.Key{"task_queue", "worker_type"}},
	"temporal_sticky_cache_size":                       {},
}

// view returns how a metric is exported; metrics of the SDK that are not listed are
// dropped.
func view(i metric.Instrument) (metric.Stream, bool) {
	s := metric.Stream{Name: i.Name, Description: i.Description, Unit: i.Unit, AttributeFilter: withoutSDKLabels}
	bounds := buckets
	if strings.HasPrefix(i.Name, "temporal_") {
		keep, ok := sdkMetrics[i.Name]
		if !ok {
			s.Aggregation = metric.AggregationDrop{}
			return s, true
		}
		s.AttributeFilter, bounds = attribute.NewAllowKeysFilter(keep.labels...), keep.buckets
	}
	if i.Kind == metric.InstrumentKindHistogram {
		s.Aggregation = metric.AggregationExplicitBucketHistogram{Boundaries: bounds}
	}
	return s, true
}
