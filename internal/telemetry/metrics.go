package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Metrics are the metrics of one process: its own, and samples of external sources.
type Metrics struct {
	registry *prometheus.Registry
	provider *metric.MeterProvider
	lg       *slog.Logger
}

// NewMetrics returns the metrics of the Go runtime and the process.
func NewMetrics(lg *slog.Logger) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("create metrics exporter: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(view))
	return &Metrics{registry, provider, lg}, nil
}

// Handler returns the handler for the metrics of the Temporal SDK and activities.
func (m *Metrics) Handler() client.MetricsHandler {
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                m.provider.Meter("criticizer"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { m.lg.Error("metric not created", "error", err) },
	})
}

// A Sample is one value of an external source.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// AddSource calls read at each scrape. The gauge criticizer_source_up, with the source
// as its label, is 0 if read failed.
func (m *Metrics) AddSource(name string, read func(context.Context) ([]Sample, error)) {
	m.registry.MustRegister(source{name, read, m.lg})
}

// A source is a collector that does not describe its metrics in advance.
type source struct {
	name string
	read func(context.Context) ([]Sample, error)
	lg   *slog.Logger
}

// readTimeout is less than the usual scrape timeouts.
const readTimeout = 5 * time.Second

// Describe implements [prometheus.Collector].
func (source) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s source) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	samples, err := s.read(ctx)
	up := Sample{Name: "criticizer_source_up", Labels: map[string]string{"source": s.name}, Value: 1}
	if err != nil {
		s.lg.WarnContext(ctx, "metrics source failed", "source", s.name, "error", err)
		up.Value, samples = 0, nil
	}
	for _, sample := range append(samples, up) {
		to <- sample.gauge()
	}
}

func (s Sample) gauge() prometheus.Metric {
	desc := prometheus.NewDesc(s.Name, "See docs/observability.md.", nil, s.Labels)
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value)
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// The Temporal SDK adds six labels to every metric and has about forty metrics of its
// own: thousands of series per worker. We export only those that our own metrics do
// not cover (docs/observability.md); a test limits their number.

// buckets, in seconds, cover queries as well as stages that waited for an outage.
var buckets = []float64{0.05, 0.2, 1, 5, 15, 30, 60, 120, 600, 3600}

// requestBuckets, in seconds, are for requests to Temporal.
var requestBuckets = []float64{0.01, 0.1, 1, 10}

// withoutSDKLabels keeps the labels that we add to our own metrics.
var withoutSDKLabels = attribute.NewDenyKeysFilter("namespace", "client_name", "worker_type", "workflow_type", "activity_type", "task_queue")

// An sdkMetric is an exported metric of the SDK: its labels and, for a histogram, its
// buckets. A histogram without buckets has a sum and a count.
type sdkMetric struct {
	labels  []attribute.Key
	buckets []float64
}

var sdkMetrics = map[string]sdkMetric{
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

// readyTimeout limits one readiness check.
const readyTimeout = 5 * time.Second

// Serve serves /healthz, /readyz and /metrics on address until stop is called.
// /healthz reports that the process is alive, /readyz the error of ready. That error
// is shown to every client: it must not contain secrets.
func Serve(address string, m *Metrics, ready func(context.Context) error) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for metrics: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readyTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			m.lg.Error("serving metrics failed", "error", err)
		}
	}, nil
}
