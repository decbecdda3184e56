// Package traces exports spans as the standard OTEL_* environment variables configure.
// It is separate from package telemetry so that the trigger does not link metrics.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// Start starts the export of spans. It returns the interceptors for the Temporal client,
// and flush, which exports the last spans within flushTimeout. Without
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT there are no spans.
func Start(ctx context.Context, lg *slog.Logger, service string, flushTimeout time.Duration) (interceptors []interceptor.ClientInterceptor, flush func(), err error) {
	if !enabled() {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("create trace exporter: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("describe the process in traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(textlessExporter{exporter}), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { lg.WarnContext(ctx, "trace export failed", "error", err) }))
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: provider.Tracer("criticizer"), DisableBaggage: true, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create trace interceptor: %w", err)
	}
	return []interceptor.ClientInterceptor{tracing}, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			lg.WarnContext(ctx, "export of the last traces failed", "error", err)
		}
	}, nil
}

// enabled reports whether the environment configures an exporter.
func enabled() bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// spanKeys lists the exported attributes.
var spanKeys = []attribute.Key{"temporalWorkflowID", "temporalRunID", "temporalActivityID"}

// textlessExporter exports spans without texts, which may hold a path or an address: other
// attributes, events, links and error messages (security 9.3.3).
type textlessExporter struct{ trace.SpanExporter }

// ExportSpans implements [trace.SpanExporter].
func (s textlessExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	bare := make([]trace.ReadOnlySpan, len(spans))
	for i, span := range spans {
		bare[i] = bareSpan{span}
	}
	return s.SpanExporter.ExportSpans(ctx, bare)
}

type bareSpan struct{ trace.ReadOnlySpan }

// Attributes implements [trace.ReadOnlySpan].
func (s bareSpan) Attributes() []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(s.ReadOnlySpan.Attributes()), func(a attribute.KeyValue) bool {
		return !slices.Contains(spanKeys, a.Key)
	})
}

// Events implements [trace.ReadOnlySpan].
func (bareSpan) Events() []trace.Event { return nil }

// Links implements [trace.ReadOnlySpan].
func (bareSpan) Links() []trace.Link { return nil }

// Status implements [trace.ReadOnlySpan].
func (s bareSpan) Status() trace.Status { return trace.Status{Code: s.ReadOnlySpan.Status().Code} }
