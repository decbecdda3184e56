package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Metrics are the metrics of one process: its own, and readings of external sources.
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

// A Reading is one value of an external source.
type Reading struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// AddSource calls read at each scrape. The gauge criticizer_source_up, with the source
// as its label, is 0 if read failed.
func (m *Metrics) AddSource(name string, read func(context.Context) ([]Reading, error)) {
	m.registry.MustRegister(source{name, read, m.lg})
}

// A source is a collector that does not describe its metrics in advance.
type source struct {
	name string
	read func(context.Context) ([]Reading, error)
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
	readings, err := s.read(ctx)
	up := Reading{Name: "criticizer_source_up", Labels: map[string]string{"source": s.name}, Value: 1}
	if err != nil {
		s.lg.WarnContext(ctx, "metrics source failed", "source", s.name, "error", err)
		up.Value, readings = 0, nil
	}
	for _, r := range append(readings, up) {
		to <- r.gauge()
	}
}

func (r Reading) gauge() prometheus.Metric {
	desc := prometheus.NewDesc(r.Name, "See docs/observability.md.", nil, r.Labels)
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, r.Value)
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
