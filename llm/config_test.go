package llm

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	got := Config{BaseURL: "https://host/v1", Model: "m"}.withDefaults()
	want := Config{
		BaseURL: "https://host/v1", Model: "m", Timeout: 5 * time.Minute, MaxPromptTokens: 16_000, MaxAnswerTokens: 8_000,
		MaxTokensPerReview: 400_000, Concurrency: 2, AnswerFormat: FormatSchema,
		Language: "English", MinSeverity: review.SeverityLow, MaxFindings: 20, Falsify: FalsifyOff,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNewRefusesAnInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no endpoint":               {func(c *Config) { c.BaseURL = "" }, "set the base URL"},
		"endpoint without a host":   {func(c *Config) { c.BaseURL = "https:///v1" }, "want a form like"},
		"endpoint of another kind":  {func(c *Config) { c.BaseURL = "ftp://host/v1" }, "want https:// or http://"},
		"password in the endpoint":  {func(c *Config) { c.BaseURL = "https://u:hunter2@host/v1" }, "use the API key"},
		"password in a broken one":  {func(c *Config) { c.BaseURL = "https://u:hunter2@host:x y/v1" }, "cannot be read"},
		"query in the endpoint":     {func(c *Config) { c.BaseURL = "https://host/v1?key=hunter2" }, "holds a query"},
		"no model":                  {func(c *Config) { c.Model = "" }, "set the model"},
		"negative timeout":          {func(c *Config) { c.Timeout = -1 }, "is negative"},
		"prompt too small":          {func(c *Config) { c.MaxPromptTokens = 5_999 }, "below 6000"},
		"negative answer":           {func(c *Config) { c.MaxAnswerTokens = -1 }, "is negative"},
		"review below one call":     {func(c *Config) { c.MaxTokensPerReview = 23_999 }, "below one call"},
		"negative concurrency":      {func(c *Config) { c.Concurrency = -1 }, "want 1 to 64"},
		"too many calls at a time":  {func(c *Config) { c.Concurrency = 65 }, "want 1 to 64"},
		"temperature out of bounds": {func(c *Config) { c.Temperature = 2.5 }, "want 0 to 2"},
		"unknown answer format":     {func(c *Config) { c.AnswerFormat = "xml" }, "want json_schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{BaseURL: "https://host/v1", Model: "m", APIKey: secret.New("hunter2")}
			test.change(&cfg)
			_, err := New(slog.New(slog.DiscardHandler), newPipeline(t), cfg)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got error %v, want one that says %q", err, test.says)
			}
			if got := failure.ClassOf(err); got != failure.ConfigInvalid {
				t.Errorf("got class %s", got)
			}
			mustNotShow(t, "error", err.Error(), "hunter2")
		})
	}
}

func TestNewRefusesToWorkUnguarded(t *testing.T) {
	t.Parallel()
	_, err := New(slog.New(slog.DiscardHandler), nil, Config{BaseURL: "https://host/v1", Model: "m"})
	if failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("got %v, want a refusal (security 9.5.5)", err)
	}
}
