package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
)

// Redact returns a handler that passes the message and every value through
// scrub before next sees them. Numbers, times and booleans pass as they are;
// any other value, an error among them, becomes its scrubbed text, for nothing
// else can be vouched for. Keys pass too: they are ours.
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
	v = v.Resolve() // a LogValuer decides first what it shows
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

// any keeps numbers of named types numbers, but without their methods.
func (h redacting) any(x any) slog.Value {
	if err, ok := x.(error); ok {
		return h.text(fmt.Sprint(err)) // survives an Error method that panics
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
		return h.text(string(v.Bytes())) // as numbers, no scrubber would know it again
	}
	return h.text(fmt.Sprintf("%+v", x))
}

func (h redacting) text(s string) slog.Value { return slog.StringValue(h.scrub(s)) }
