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

// Metrics are the figures of one process: what it counts itself, and what it
// reads elsewhere when it is asked.
type Metrics struct {
	registry *prometheus.Registry
	provider *metric.MeterProvider
	lg       *slog.Logger
}

// NewMetrics returns metrics that have nothing but the runtime's figures.
func NewMetrics(lg *slog.Logger) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make the exporter of metrics: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(view))
	return &Metrics{registry, provider, lg}, nil
}

// Handler takes what the Temporal SDK and activities count.
func (m *Metrics) Handler() client.MetricsHandler {
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                m.provider.Meter("criticizer"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { m.lg.Error("metric could not be made", "error", err) },
	})
}

// A Reading is one figure of something outside this process.
type Reading struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Pull has read asked at each scrape. Whether it could tell is a figure itself:
// criticizer_source_up, with the source as its label.
func (m *Metrics) AddSource(source string, read func(context.Context) ([]Reading, error)) {
	m.registry.MustRegister(pulled{source, read, m.lg})
}

// pulled is a collector that does not say beforehand what it collects.
type pulled struct {
	source string
	read   func(context.Context) ([]Reading, error)
	lg     *slog.Logger
}

// pullTimeout is less than the least scrape timeout in use.
const pullTimeout = 5 * time.Second

// Describe implements [prometheus.Collector].
func (pulled) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (p pulled) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout)
	defer cancel()
	readings, err := p.read(ctx)
	up := Reading{Name: "criticizer_source_up", Labels: map[string]string{"source": p.source}, Value: 1}
	if err != nil {
		p.lg.WarnContext(ctx, "figures could not be read", "source", p.source, "error", err)
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
