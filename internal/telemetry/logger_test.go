package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/testkit"
)

// plain is the secret that scrub masks.
const plain = "correct-horse-battery"

func scrub(s string) string { return strings.ReplaceAll(s, plain, "[masked]") }

// A file gets JSON, from the configured level on.
func TestLogOfAFile(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.NoError(t, err)
	defer func() { _ = f.Close() }()
	telemetry.Logger(f, telemetry.Config{Scrub: scrub}).Debug("hidden by default")
	telemetry.Logger(f, telemetry.Config{Scrub: scrub, Level: slog.LevelError}).Warn("hidden")
	telemetry.Logger(f, telemetry.Config{Scrub: scrub, Level: slog.LevelDebug}).Debug("fetched "+plain, "changelist", 4711)
	out, err := os.ReadFile(f.Name())
	if err != nil || !json.Valid(out) || !strings.Contains(string(out), `"msg":"fetched [masked]","changelist":4711}`) {
		t.Errorf("wrote %q, %v", out, err)
	}
}

// A terminal gets colored text, without color if NO_COLOR is set.
func TestLogOfATerminal(t *testing.T) {
	for noColor, color := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", noColor)
		var out bytes.Buffer
		lg := telemetry.TerminalLogger(&out, telemetry.Config{Scrub: scrub})
		lg.Debug("hidden by default")
		lg.Error("failed "+plain, "changelist", 4711)
		if got := out.String(); !strings.Contains(got, "failed [masked]") || !strings.Contains(got, "4711") ||
			strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b[") != color {
			t.Errorf("NO_COLOR=%q: wrote %q, want one line, in color: %t", noColor, got, color)
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

type (
	number    int
	ratio     float32
	flag      bool
	word      string
	raw       []byte
	stringer  struct{}
	marshaler struct{}
	valuer    struct{ v slog.Value }
	broken    struct{ s *string }
)

func (number) String() string                  { return plain }
func (number) MarshalText() ([]byte, error)    { return []byte(plain), nil }
func (stringer) String() string                { return plain }
func (marshaler) MarshalJSON() ([]byte, error) { return []byte(`"` + plain + `"`), nil }
func (v valuer) LogValue() slog.Value          { return v.v }
func (b broken) Error() string                 { return *b.s }

// No log shows a secret, wherever it is in a record (security 9.3.3).
func TestRedactScrubsEveryValue(t *testing.T) {
	t.Parallel()
	nested := struct {
		Name  string
		Inner []string
		Map   map[string]string
	}{plain, []string{plain}, map[string]string{plain: plain}}
	text := plain
	values := map[string]any{
		"string":                      plain,
		"named string":                word(plain),
		"inside a string":             "-" + plain + "-",
		"error":                       errors.New(plain),
		"wrapped error":               fmt.Errorf("send: %w", errors.New(plain)),
		"joined error":                errors.Join(errors.New("a"), errors.New(plain)),
		"bytes":                       []byte(plain),
		"named bytes":                 raw(plain),
		"raw JSON":                    json.RawMessage(`"` + plain + `"`),
		"slice":                       []string{plain},
		"map":                         map[string]any{"k": []any{plain}},
		"struct":                      nested,
		"pointer to struct":           &nested,
		"pointer to string":           &text,
		"stringer":                    stringer{},
		"marshaler":                   marshaler{},
		"number with a String method": number(7),
		"LogValuer":                   valuer{slog.StringValue(plain)},
		"LogValuer twice":             valuer{slog.AnyValue(valuer{slog.StringValue(plain)})},
		"LogValuer group":             valuer{slog.GroupValue(slog.String("k", plain))},
		"LogValuer any":               valuer{slog.AnyValue(nested)},
		"group":                       slog.GroupValue(slog.Group("g", slog.Any("e", errors.New(plain)))),
		"secret":                      secret.New(plain),
		"hidden secret":               struct{ s secret.Value }{secret.New(plain)},
	}
	loggers := map[string]func(io.Writer, telemetry.Config) *slog.Logger{
		"JSON": telemetry.Logger, "terminal": telemetry.TerminalLogger,
	}
	for name, value := range values {
		for format, logger := range loggers {
			var out bytes.Buffer
			lg := logger(&out, telemetry.Config{Scrub: scrub})
			lg.Info("as argument", "k", value)
			lg.With("k", value).Info("as attribute of the logger")
			lg.WithGroup("a").With("k", value).WithGroup("b").Info("in groups", slog.Group("c", "k", value))
			if strings.Contains(out.String(), plain) || strings.Count(out.String(), "\n") != 3 {
				t.Errorf("%s: %s: wrote\n%s", name, format, &out)
			}
		}
	}
}

// Numbers and times keep their types, so that logs can be searched by them.
func TestRedactKeepsOtherTypes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		value any
		want  any
	}{
		"int":            {7, 7.0},
		"named int":      {number(7), 7.0},
		"unsigned":       {uint8(7), 7.0},
		"float":          {1.5, 1.5},
		"named float":    {ratio(1.5), 1.5},
		"bool":           {true, true},
		"named bool":     {flag(true), true},
		"duration":       {time.Second, 1e9},
		"time":           {at, "2026-03-01T12:00:00Z"},
		"nil":            {nil, nil},
		"named string":   {word("llm"), "llm"},
		"bytes":          {[]byte("diff"), "diff"},
		"error":          {errors.New("odd"), "odd"},
		"broken error":   {broken{}, "%!v(PANIC=Error method: runtime error: invalid memory address or nil pointer dereference)"},
		"struct":         {struct{ A, B int }{1, 2}, "{A:1 B:2}"},
		"group":          {slog.GroupValue(slog.Int("a", 1)), map[string]any{"a": 1.0}},
		"LogValuer":      {valuer{slog.IntValue(7)}, 7.0},
		"unset secret":   {secret.Value{}, "[secret]"},
		"nil of a type":  {(*broken)(nil), "<nil>"},
		"slice of words": {[]word{"a", "b"}, "[a b]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			telemetry.Logger(&out, telemetry.Config{Scrub: scrub}).Info("said", "k", tt.value)
			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if got := line["k"]; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("wrote %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestLoggerMeetsSlogsRules(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	lg := telemetry.Logger(&out, telemetry.Config{Scrub: strings.Clone})
	err := slogtest.TestHandler(lg.Handler(), func() (lines []map[string]any) {
		for line := range bytes.Lines(out.Bytes()) {
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, m)
		}
		return lines
	})
	if err != nil {
		t.Error(err)
	}
}
