package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
)

// An attempt that failed is a warning, for it is made again; an error is what the
// SDK says of anything else.
func TestFailedAttemptsAreWarnings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	lg := log.NewStructuredLogger(slog.New(sdkLines{slog.NewTextHandler(&out, nil)}))
	log.With(lg, "Namespace", "n").Error("Activity error.", "Error", errors.New("away"))
	lg.Error("Activity panic.")
	if said := out.String(); strings.Count(said, "level=WARN") != 1 || strings.Count(said, "level=ERROR") != 1 || !strings.Contains(said, "Namespace=n") {
		t.Errorf("logged %s", said)
	}
}
