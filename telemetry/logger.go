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

// A Format is the form of log lines.
type Format string

// The formats.
const (
	FormatAuto Format = "auto" // text on a terminal, JSON elsewhere
	FormatText Format = "text" // lines for people, in colour on a terminal
	FormatJSON Format = "json" // one object per line
)

// Config says what is logged, and how.
type Config struct {
	// Level is the least level that is logged. Default info.
	Level slog.Level
	// Format defaults to FormatAuto.
	Format Format
}

// Logger returns a logger that writes to w. Every text passes scrub first:
// mains plug in the redaction pipeline. The environment variable NO_COLOR, set
// to anything, turns colour off (no-color.org).
func Logger(w io.Writer, scrub func(string) string, cfg Config) *slog.Logger {
	return slog.New(Redact(handler(w, cfg), scrub))
}

func handler(w io.Writer, cfg Config) slog.Handler {
	terminal := isTerminal(w)
	if cfg.Format == FormatText || cfg.Format != FormatJSON && terminal {
		return tint.NewTextHandler(w, &tint.Options{Level: cfg.Level, NoColor: !terminal || os.Getenv("NO_COLOR") != ""})
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: cfg.Level})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
