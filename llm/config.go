package llm

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

// An AnswerFormat is the format that the endpoint is asked to answer in. Every
// answer is validated against the same schema.
type AnswerFormat string

// The answer formats, most reliable first. [FormatAuto] is the dialect's format.
const (
	FormatAuto   AnswerFormat = "auto"
	FormatSchema AnswerFormat = "json_schema" // decoding constrained by the schema
	FormatObject AnswerFormat = "json_object" // any JSON object; the schema is in the prompt
	FormatText   AnswerFormat = "text"        // any text; the schema is in the prompt
)

var answerFormats = []AnswerFormat{FormatSchema, FormatObject, FormatText}

// A VerifyMode selects the findings for the verification pass: none, all, or all from a
// severity on. The mode is then the name of that severity.
type VerifyMode string

// The verify modes that are no severity.
const (
	VerifyOff VerifyMode = "off"
	VerifyOn  VerifyMode = "on"
)

// covers reports whether findings of severity s are verified.
func (m VerifyMode) covers(s review.Severity) bool {
	return m == VerifyOn || m != VerifyOff && rank(s) <= rank(review.Severity(m))
}

const (
	defaultTimeout = 5 * time.Minute
	// totalTimeouts is the number of timeouts after which an answer that still arrives is
	// given up: an endpoint that sends a byte now and then must not hold a worker.
	totalTimeouts = 4
)

// Bounds of a Config.
const (
	// minPromptTokens has room for the instructions, the longest description and
	// the longest line, so that every line of a change fits in a call.
	minPromptTokens = 6_500
	maxConcurrency  = 64
)

// Config configures a [Reviewer]. KeyHeader is set by the dialect. Tokens are counted with the o200k vocabulary,
// which is an estimate for models with another vocabulary.
type Config struct {
	EndpointConfig
	// Model is the model's name at the endpoint. Required.
	Model string
	// Fallbacks are models of the same endpoint. Each is asked if the one before
	// it cannot answer. Default none.
	Fallbacks []string
	// CodeKey makes the check code of the instructions one that only this installation
	// knows. Default: a code of the prompt version.
	CodeKey secret.Value
	// Dialect is the name of a [Dialect], or "auto" to detect it. Default auto.
	Dialect string
	// API is chat or responses. Default chat.
	API string
	// ContextTokens is the number of tokens that the server reads in one call, prompt and
	// answer. Default 0: it is asked, if its dialect has a way to.
	ContextTokens int
	// MaxPromptTokens bounds one call's prompt; a larger change takes several
	// calls. Models review small prompts better. Default 16,000, at least 6,500.
	MaxPromptTokens int
	// MaxAnswerTokens bounds one call's answer, including the thinking of a
	// reasoning model. Default 16,384.
	MaxAnswerTokens int
	// MaxTokensPerReview bounds the prompts and the longest possible answers of
	// one review. Files beyond it are omitted and reported as such. Default
	// 400,000, at least one full call.
	MaxTokensPerReview int
	// Concurrency is the number of concurrent calls of one review. Default 2, at
	// most 64.
	Concurrency int
	// Temperature, TopP, Seed and ReasoningEffort are sent if they are set. Default: the
	// endpoint's defaults.
	Temperature, TopP *float64
	Seed              *int
	ReasoningEffort   string
	// Extra are other fields of the request. They replace ours. Default none.
	Extra map[string]any
	// Rules are the rule packs, selected by path. Default none.
	Rules *rules.Set
	// Language is the language of findings, as a name such as "German". Default
	// English.
	Language string
	// AnswerFormat is the first format to request. If the endpoint refuses it,
	// the next one is used. Default auto.
	AnswerFormat AnswerFormat
	// MinSeverity is the lowest severity that is reported. Default low: all.
	MinSeverity review.Severity
	// Nitpicks also reports maintainability findings of severity low. Default
	// false.
	Nitpicks bool
	// MaxFindings bounds the findings of one review, worst first. Default 20.
	MaxFindings int
	// Verify is off, on, or the lowest severity that is verified. Default high.
	Verify VerifyMode
	// ReviewContext and VerifyContext select the code around the change in the prompts of
	// reviews and verifications. Default file and all.
	ReviewContext, VerifyContext ContextMode
}

func (c Config) withDefaults() Config {
	c.MaxPromptTokens = cmp.Or(c.MaxPromptTokens, 16_000)
	c.MaxAnswerTokens = cmp.Or(c.MaxAnswerTokens, 16_384)
	c.MaxTokensPerReview = cmp.Or(c.MaxTokensPerReview, 400_000)
	c.Concurrency = cmp.Or(c.Concurrency, 2)
	c.AnswerFormat = cmp.Or(c.AnswerFormat, FormatAuto)
	c.Dialect = cmp.Or(c.Dialect, "auto")
	c.API = cmp.Or(c.API, apiChat)
	c.Language = cmp.Or(c.Language, "English")
	c.MinSeverity = cmp.Or(c.MinSeverity, review.SeverityLow)
	c.MaxFindings = cmp.Or(c.MaxFindings, 20)
	c.Verify = cmp.Or(c.Verify, VerifyMode(review.SeverityHigh))
	c.ReviewContext = cmp.Or(c.ReviewContext, ContextFile)
	c.VerifyContext = cmp.Or(c.VerifyContext, ContextAll)
	return c
}

// languageName matches a name, not a sentence: it becomes part of the instructions.
var languageName = regexp.MustCompile(`^[\pL][\pL ()-]{0,39}$`)

// validate checks what the configuration file's own checks leave to this package.
func (c Config) validate() error {
	switch {
	case c.Model == "" || slices.Contains(c.Fallbacks, ""):
		return fmt.Errorf("name of a model is empty: set it")
	case c.MaxPromptTokens < minPromptTokens:
		return fmt.Errorf("prompt limit of %d tokens is below %d", c.MaxPromptTokens, minPromptTokens)
	case c.MaxTokensPerReview < c.MaxPromptTokens+c.MaxAnswerTokens:
		return fmt.Errorf("review limit of %d tokens is below one call: %d for the prompt and %d for the answer", c.MaxTokensPerReview, c.MaxPromptTokens, c.MaxAnswerTokens)
	case !languageName.MatchString(c.Language):
		return fmt.Errorf("language %q: want a name of at most 40 letters, such as German", c.Language)
	case c.Concurrency > maxConcurrency:
		return fmt.Errorf("model concurrency of %d: want %d at most", c.Concurrency, maxConcurrency)
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return fmt.Errorf("model temperature of %g: want 0 to 2", *c.Temperature)
	}
	return nil
}

// models returns the configured models in the order in which they are asked.
func (c Config) models() []string { return append([]string{c.Model}, c.Fallbacks...) }
