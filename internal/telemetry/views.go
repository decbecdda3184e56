package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
)

// The SDK puts six labels on whatever is counted, and counts some forty things
// itself, each by operation, queue and type: thousands of series of one worker,
// which all cost whoever scrapes them. What is left answers a question that our own
// figures leave open (docs/observability.md); a test holds their number.

// buckets, in seconds, reach from a query to a stage that waited for an outage.
var buckets = []float64{0.05, 0.2, 1, 5, 15, 30, 60, 120, 600, 3600}

// requestBuckets tell a Temporal server that is quick from one that is not.
var requestBuckets = []float64{0.01, 0.1, 1, 10}

// withoutSDKLabels leaves what we say of our own figures.
var withoutSDKLabels = attribute.NewDenyKeysFilter("namespace", "client_name", "worker_type", "workflow_type", "activity_type", "task_queue")

// A kept is what is left of one metric of the SDK: its labels and, if it is a
// histogram, its buckets. Without buckets there is still an average.
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

// view says in which form a figure is exported, if it is.
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
