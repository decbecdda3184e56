package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/telemetry"
)

type (
	number    int
	word      string
	raw       []byte
	stringer  struct{}
	marshaler struct{}
	valuer    struct{ v slog.Value }
)

func (number) String() string                  { return plain }
func (number) MarshalText() ([]byte, error)    { return []byte(plain), nil }
func (stringer) String() string                { return plain }
func (marshaler) MarshalJSON() ([]byte, error) { return []byte(`"` + plain + `"`), nil }
func (v valuer) LogValue() slog.Value          { return v.v }

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
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{"json", "text"} {
				var out bytes.Buffer
				lg := telemetry.Logger(&out, telemetry.Config{Scrub: scrub, Format: format})
				lg.Info("as argument", "k", value)
				lg.With("k", value).Info("as attribute of the logger")
				lg.WithGroup("a").With("k", value).WithGroup("b").Info("in groups", slog.Group("c", "k", value))
				if strings.Contains(out.String(), plain) || strings.Count(out.String(), "\n") != 3 {
					t.Errorf("%s: wrote\n%s", format, &out)
				}
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
