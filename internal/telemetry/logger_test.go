package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/telemetry"
)

// plain is the secret that scrub masks.
const plain = "correct-horse-battery"

func scrub(s string) string { return strings.ReplaceAll(s, plain, "[masked]") }

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format   string
		wantJSON bool
	}{
		"auto is JSON without a terminal": {"auto", true},
		"none is auto":                    {"", true},
		"JSON":                            {"json", true},
		"text":                            {"text", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			telemetry.Logger(&out, telemetry.Config{Scrub: scrub, Format: tt.format}).
				Info("fetched "+plain, "changelist", 4711, "stage", plain)
			if json.Valid(out.Bytes()) != tt.wantJSON {
				t.Errorf("wrote %q, want JSON: %t", &out, tt.wantJSON)
			}
			if strings.Contains(out.String(), plain) || strings.Count(out.String(), "[masked]") != 2 {
				t.Errorf("wrote %q, want the secret masked twice", &out)
			}
			if strings.Contains(out.String(), "\x1b[") {
				t.Errorf("wrote %q, want no color without a terminal", &out)
			}
		})
	}
}

func TestFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	telemetry.Logger(f, telemetry.Config{Scrub: scrub}).Info("started")
	if out, err := os.ReadFile(f.Name()); err != nil || !json.Valid(out) {
		t.Errorf("wrote %q, %v; want JSON", out, err)
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		telemetry.Logger(&out, telemetry.Config{Scrub: scrub, Format: format}).Debug("hidden by default")
		telemetry.Logger(&out, telemetry.Config{Scrub: scrub, Format: format, Level: slog.LevelError}).Warn("hidden")
		if out.Len() > 0 {
			t.Errorf("%s: wrote %q below the level", format, &out)
		}
		telemetry.Logger(&out, telemetry.Config{Scrub: scrub, Format: format, Level: slog.LevelDebug}).Debug("shown")
		if out.Len() == 0 {
			t.Errorf("%s: wrote nothing at the level", format)
		}
	}
}

func TestLoggerNeedsAScrubber(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Logger did not panic")
		}
	}()
	telemetry.Logger(&bytes.Buffer{}, telemetry.Config{})
}

func TestSDKKeysAreMapped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	telemetry.Logger(&out, telemetry.Config{Scrub: func(s string) string { return s }}).
		Info("Activity error.", "WorkflowID", "review-p4-1-v1", "Attempt", 2) //nolint:sloglint // the SDK's keys
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["workflow_id"] != "review-p4-1-v1" || line["attempt"] != 2.0 {
		t.Errorf("line = %v, want our keys", line)
	}
}
