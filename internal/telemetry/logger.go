// Package telemetry provides the log and the metrics of a process. Every text in the
// log is redacted before it is written (security 9.3.3).
package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Config configures a logger.
type Config struct {
	// Lowest level that is logged: debug, info, warn or error.
	Level slog.Level `yaml:"level" default:"info"`
	// Scrub redacts a text. Required: Logger panics without it, so that no logger
	// shows secrets by omission.
	Scrub func(string) string
}

// Logger returns a logger that writes to w: JSON, or colored text to a terminal. The environment
// variable NO_COLOR turns color off (no-color.org). Logger redacts the message and every value with
// cfg.Scrub, but not the keys, which are constants.
func Logger(w io.Writer, cfg Config) *slog.Logger { return newLogger(w, cfg, isTerminal(w)) }

func newLogger(w io.Writer, cfg Config, terminal bool) *slog.Logger {
	if cfg.Scrub == nil {
		panic("telemetry: Config.Scrub is not set")
	}
	// A handler calls replace for the message too, and for the members of groups.
	replace := func(_ []string, a slog.Attr) slog.Attr {
		return slog.Attr{Key: cmp.Or(sdkKeys[a.Key], a.Key), Value: redacted(a.Value, cfg.Scrub)}
	}
	if terminal {
		return slog.New(tint.NewTextHandler(w, &tint.Options{
			Level: cfg.Level, ReplaceAttr: replace, NoColor: os.Getenv("NO_COLOR") != "",
		}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: cfg.Level, ReplaceAttr: replace}))
}

// sdkKeys maps the attribute keys of the Temporal SDK to ours.
var sdkKeys = map[string]string{
	"Namespace":    "namespace",
	"TaskQueue":    "task_queue",
	"WorkerID":     "worker",
	"WorkflowID":   "workflow_id",
	"WorkflowType": "workflow",
	"RunID":        "run_id",
	"ActivityID":   "activity_id",
	"ActivityType": "activity",
	"Attempt":      "attempt",
	"Error":        "error",
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// redacted returns the value as a handler may write it. Numbers, times and booleans do
// not change, but values of named types lose their methods; any other value, such as an
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
