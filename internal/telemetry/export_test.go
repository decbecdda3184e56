package telemetry

import (
	"io"
	"log/slog"
)

// TerminalLogger is Logger for a w that is a terminal.
func TerminalLogger(w io.Writer, cfg Config) *slog.Logger { return newLogger(w, cfg, true) }
