// Package traces sends what took how long where the standard OTEL_* variables
// say. It is apart from the metrics, so that what a submit waits for need not
// load them.
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
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// Start sends spans from now on, and returns what makes the Temporal SDK take
// part, and what to call in the end: it waits at most patience for the last spans
// to be sent. Without OTEL_EXPORTER_OTLP_ENDPOINT, or its variant for traces,
// there are none.
func Start(ctx context.Context, lg *slog.Logger, service string, patience time.Duration) (take []interceptor.ClientInterceptor, flush func(), err error) {
	if !wanted() {
		return nil, func() {}, nil
	}
	sender, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("describe the process in traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(discreet{sender}), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { lg.WarnContext(ctx, "traces could not be sent", "error", err) }))
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: provider.Tracer("criticizer"), DisableBaggage: true, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make the interceptor of traces: %w", err)
	}
	return []interceptor.ClientInterceptor{tracing}, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			lg.WarnContext(ctx, "last traces could not be sent", "error", err)
		}
	}, nil
}

// Span begins a span within that of ctx, for what is asked of the world outside.
// end ends it, with how many there were of what was asked for.
func Span(ctx context.Context, name string) (within context.Context, end func(count int, err error)) {
	within, span := otel.Tracer("criticizer").Start(ctx, name)
	return within, func(count int, err error) {
		span.SetAttributes(attribute.Int("count", count))
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// wanted reports whether the environment asks for traces.
func wanted() bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// spanKeys are the attributes that a span may carry: ids, stages and counts.
var spanKeys = []attribute.Key{"temporalWorkflowID", "temporalRunID", "temporalActivityID", "stage", "result", "count"}

// discreet sends spans without what may hold text, a path or an address: other
// attributes, events, links, and what an error says (security 9.3.3).
type discreet struct{ trace.SpanExporter }

// ExportSpans implements [trace.SpanExporter].
func (d discreet) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	bare := make([]trace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		bare[i] = bareSpan{s}
	}
	return d.SpanExporter.ExportSpans(ctx, bare)
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
