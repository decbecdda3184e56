// Package telemetry is what processes say about themselves: structured logs,
// for people on a terminal and as JSON elsewhere. Every text in them passes a
// scrubber before any handler sees it (security 9.3.3).
package telemetry

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// The keys of attributes that are the same everywhere, so that one search finds
// a review in the logs of every stage.
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
	FormatText = "text" // lines for people, in colour on a terminal
	FormatJSON = "json" // one object per line
)

// Config says what is logged, and how.
type Config struct {
	// Level is the least level that is logged. Default info.
	Level slog.Level
	// Format defaults to FormatAuto.
	Format string
	// Scrub masks what may not be shown in a text; mains plug in the redaction
	// pipeline. Required: Logger panics without it, for a logger that shows
	// secrets must not come about by an omission.
	Scrub func(string) string
}

// Logger returns a logger that writes to w. Every text passes cfg.Scrub first.
// The environment variable NO_COLOR, set to anything, turns colour off
// (no-color.org).
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

// sdkKeys maps the keys of the Temporal SDK's own lines to ours.
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
