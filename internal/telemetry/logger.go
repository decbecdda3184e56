// Package telemetry provides the log and the metrics of a process. Every text in the
// log is redacted before a handler sees it (security 9.3.3).
package telemetry

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Attribute keys that all stages use for a review.
const (
	KeyChangelist    = "changelist"
	KeyReviewVersion = "review_version"
	KeyStage         = "stage"
	KeyAttempt       = "attempt"
	KeyWorkflowID    = "workflow_id"
)

// The formats of log lines.
const (
	FormatAuto = "auto" // text on a terminal, JSON elsewhere
	FormatText = "text" // lines of text, in color on a terminal
	FormatJSON = "json" // one JSON object per line
)

// Config configures a logger.
type Config struct {
	// Level is the lowest level that is logged. Default: info.
	Level slog.Level
	// Format is the format. Default: FormatAuto.
	Format string
	// Scrub redacts a text. Required: Logger panics without it, so that no logger
	// shows secrets by omission.
	Scrub func(string) string
}

// Logger returns a logger that writes to w and redacts every text with cfg.Scrub. The
// environment variable NO_COLOR turns color off (no-color.org).
func Logger(w io.Writer, cfg Config) *slog.Logger {
	if cfg.Scrub == nil {
		panic("telemetry: Config.Scrub is not set")
	}
	return slog.New(Redact(handler(w, cfg), cfg.Scrub))
}

func handler(w io.Writer, cfg Config) slog.Handler {
	terminal := isTerminal(w)
	if cfg.Format == FormatText || cfg.Format != FormatJSON && terminal {
		return tint.NewTextHandler(w, &tint.Options{
			Level: cfg.Level, ReplaceAttr: ourKey, NoColor: !terminal || os.Getenv("NO_COLOR") != "",
		})
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: cfg.Level, ReplaceAttr: ourKey})
}

// sdkKeys maps the attribute keys of the Temporal SDK to ours.
var sdkKeys = map[string]string{
	"Namespace":    "namespace",
	"TaskQueue":    "task_queue",
	"WorkerID":     "worker",
	"WorkflowID":   KeyWorkflowID,
	"WorkflowType": "workflow",
	"RunID":        "run_id",
	"ActivityID":   "activity_id",
	"ActivityType": "activity",
	"Attempt":      KeyAttempt,
	"Error":        "error",
}

func ourKey(_ []string, a slog.Attr) slog.Attr {
	if key, ok := sdkKeys[a.Key]; ok {
		a.Key = key
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
