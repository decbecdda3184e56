package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
)

// Redact returns a handler that redacts the message and every value with scrub before
// next sees them. Numbers, times and booleans do not change; any other value, such as
// an error, becomes its redacted text. Keys do not change: they are constants.
func Redact(next slog.Handler, scrub func(string) string) slog.Handler {
	return redacting{next, scrub}
}

type redacting struct {
	next  slog.Handler
	scrub func(string) string
}

// Enabled implements slog.Handler.
func (h redacting) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h redacting) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.scrub(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redacting{h.next.WithAttrs(h.attrs(attrs)), h.scrub}
}

// WithGroup implements slog.Handler.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.next.WithGroup(name), h.scrub}
}

func (h redacting) attrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return clean
}

func (h redacting) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: a.Key, Value: h.value(a.Value)}
}

func (h redacting) value(v slog.Value) slog.Value {
	v = v.Resolve() // first of all, a LogValuer chooses its value
	switch v.Kind() {
	case slog.KindString:
		return h.text(v.String())
	case slog.KindGroup:
		return slog.GroupValue(h.attrs(v.Group())...)
	case slog.KindAny:
		return h.any(v.Any())
	default:
		return v
	}
}

// any keeps numbers of named types as numbers, without their methods.
func (h redacting) any(x any) slog.Value {
	if err, ok := x.(error); ok {
		return h.text(fmt.Sprint(err)) // recovers from a panic of the Error method
	}
	v := reflect.ValueOf(x)
	switch {
	case !v.IsValid():
		return slog.AnyValue(nil)
	case v.CanInt():
		return slog.Int64Value(v.Int())
	case v.CanUint():
		return slog.Uint64Value(v.Uint())
	case v.CanFloat():
		return slog.Float64Value(v.Float())
	case v.Kind() == reflect.Bool:
		return slog.BoolValue(v.Bool())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return h.text(string(v.Bytes())) // printed as numbers, it would escape redaction
	}
	return h.text(fmt.Sprintf("%+v", x))
}

func (h redacting) text(s string) slog.Value { return slog.StringValue(h.scrub(s)) }
