package telemetry

import (
	"fmt"
	"log/slog"
	"reflect"
)

// redacted returns the value as a handler may write it. Numbers, times and booleans do
// not change, and those of named types lose their methods; any other value, such as an
// error, becomes its redacted text.
func redacted(v slog.Value, scrub func(string) string) slog.Value {
	if v.Kind() != slog.KindString && v.Kind() != slog.KindAny {
		return v
	}
	x := v.Any()
	switch x := x.(type) {
	case slog.Level:
		return v
	case error:
		return slog.StringValue(scrub(fmt.Sprint(x))) // recovers from a panic of the Error method
	}
	r := reflect.ValueOf(x)
	switch {
	case !r.IsValid():
		return v
	case r.CanInt():
		return slog.Int64Value(r.Int())
	case r.CanUint():
		return slog.Uint64Value(r.Uint())
	case r.CanFloat():
		return slog.Float64Value(r.Float())
	case r.Kind() == reflect.Bool:
		return slog.BoolValue(r.Bool())
	case r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return slog.StringValue(scrub(string(r.Bytes()))) // printed as numbers, it would escape redaction
	}
	return slog.StringValue(scrub(fmt.Sprintf("%+v", x)))
}
