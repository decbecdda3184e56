package llm

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

// An AnswerFormat says how the endpoint is asked to shape its answer. Whatever
// it is, the answer is checked against the same schema.
type AnswerFormat string

// The answer formats, most reliable first.
const (
	FormatSchema AnswerFormat = "json_schema" // constrained decoding by the schema
	FormatObject AnswerFormat = "json_object" // any JSON object; the schema is in the prompt
	FormatText   AnswerFormat = "text"        // no promise; the schema is in the prompt
)

// A FalsifyMode says which findings get a second look that tries to refute them:
// none, all, or those of a severity and worse, which is then the mode's word.
type FalsifyMode string

// The falsify modes that are no severity.
const (
	FalsifyOff FalsifyMode = "off"
	FalsifyOn  FalsifyMode = "on"
)

// covers reports whether findings of severity s get a second look.
func (m FalsifyMode) covers(s review.Severity) bool {
	return m == FalsifyOn || m != FalsifyOff && rank(s) <= rank(review.Severity(m))
}

// The defaults of a Config.
const (
	defaultTimeout            = 5 * time.Minute
	defaultMaxPromptTokens    = 16_000
	defaultMaxAnswerTokens    = 8_000
	defaultMaxTokensPerReview = 400_000
	defaultConcurrency        = 2
	defaultMaxFindings        = 20
)

// Bounds of a Config.
const (
	// minPromptTokens holds the instructions, the longest description and the
	// longest line, so that every line of a change fits some call.
	minPromptTokens = 6_000
	maxConcurrency  = 64
)

// Config says which model to ask and how much. Tokens are counted with the
// o200k vocabulary; for a model with another one that is an estimate.
type Config struct {
	// BaseURL is where the paths of the OpenAI API begin, such as
	// https://api.openai.com/v1. Required. With http:// the redacted change and
	// the key cross the network readable: for this machine or a trusted network.
	BaseURL string
	// Model is the model's name at the endpoint. Required.
	Model string
	// Fallbacks are models of the same endpoint that are asked, in this order,
	// where the one before cannot answer. Default none.
	Fallbacks []string
	// APIKey is sent as a bearer token. Unset for servers that want none.
	APIKey secret.Value
	// APIKeyOld is tried when the endpoint does not accept APIKey, while that
	// replaces it. Default none.
	APIKeyOld secret.Value
	// Timeout bounds one call. Default 5 minutes.
	Timeout time.Duration
	// MaxPromptTokens is the size of one call's prompt; a larger change takes
	// several calls. Small prompts are reviewed better. Default 16,000, at
	// least 6,000.
	MaxPromptTokens int
	// MaxAnswerTokens bounds one call's answer, the thinking of a reasoning
	// model included. Default 8,000.
	MaxAnswerTokens int
	// MaxTokensPerReview bounds the prompts and the longest possible answers of
	// one review. What does not fit is left out and said to be. Default
	// 400,000, at least one full call.
	MaxTokensPerReview int
	// Concurrency is the number of calls of one review at a time; 1 for local
	// servers that answer one by one. Default 2, at most 64.
	Concurrency int
	// Temperature is sent if it is not zero: reasoning models refuse any.
	// Default 0, the endpoint's own.
	Temperature float32
	// Rules say what to look for in files of a kind. Default none.
	Rules *rules.Book
	// Language is what findings are written in, in words such as "German".
	// Default English.
	Language string
	// AnswerFormat is json_schema, json_object or text. A model that refuses it
	// is asked in the next one. Default json_schema.
	AnswerFormat AnswerFormat
	// MinSeverity is the least severity that is reported. Default low: all.
	MinSeverity review.Severity
	// Nitpicks reports findings of maintainability of severity low too. Default
	// false.
	Nitpicks bool
	// MaxFindings bounds the findings of one review, worst first. Default 20.
	MaxFindings int
	// Falsify is off, on, or the least severity that gets a second look. Default
	// off.
	Falsify FalsifyMode
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxPromptTokens = cmp.Or(c.MaxPromptTokens, defaultMaxPromptTokens)
	c.MaxAnswerTokens = cmp.Or(c.MaxAnswerTokens, defaultMaxAnswerTokens)
	c.MaxTokensPerReview = cmp.Or(c.MaxTokensPerReview, defaultMaxTokensPerReview)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.AnswerFormat = cmp.Or(c.AnswerFormat, FormatSchema)
	c.Language = cmp.Or(c.Language, "English")
	c.MinSeverity = cmp.Or(c.MinSeverity, review.SeverityLow)
	c.MaxFindings = cmp.Or(c.MaxFindings, defaultMaxFindings)
	c.Falsify = cmp.Or(c.Falsify, FalsifyOff)
	return c
}

// languageName is a name and no sentence, for it becomes part of the instructions.
var languageName = regexp.MustCompile(`^[\pL][\pL ()-]{0,39}$`)

func (c Config) validate() error {
	if err := validateBaseURL(c.BaseURL); err != nil {
		return err
	}
	switch {
	case c.Model == "":
		return fmt.Errorf("no model is named: set the model")
	case c.Timeout < 0:
		return fmt.Errorf("model timeout of %s is negative", c.Timeout)
	case c.MaxPromptTokens < minPromptTokens:
		return fmt.Errorf("prompt limit of %d tokens is below %d", c.MaxPromptTokens, minPromptTokens)
	case c.MaxAnswerTokens < 0:
		return fmt.Errorf("answer limit of %d tokens is negative", c.MaxAnswerTokens)
	case c.MaxTokensPerReview < c.MaxPromptTokens+c.MaxAnswerTokens:
		return fmt.Errorf("review limit of %d tokens is below one call: %d for the prompt and %d for the answer", c.MaxTokensPerReview, c.MaxPromptTokens, c.MaxAnswerTokens)
	case !languageName.MatchString(c.Language):
		return fmt.Errorf("language %q: want a name of at most 40 letters, such as German", c.Language)
	case c.Concurrency < 0 || c.Concurrency > maxConcurrency:
		return fmt.Errorf("model concurrency of %d: want 1 to %d", c.Concurrency, maxConcurrency)
	case c.Temperature < 0 || c.Temperature > 2:
		return fmt.Errorf("model temperature of %g: want 0 to 2", c.Temperature)
	case c.MaxFindings < 0:
		return fmt.Errorf("limit of %d findings is negative", c.MaxFindings)
	case rank(c.MinSeverity) < 0:
		return fmt.Errorf("least severity %q: want critical, high, medium or low", c.MinSeverity)
	case c.Falsify != FalsifyOff && c.Falsify != FalsifyOn && rank(review.Severity(c.Falsify)) < 0:
		return fmt.Errorf("falsify mode %q: want off, on, critical, high, medium or low", c.Falsify)
	case slices.Contains(c.Fallbacks, ""):
		return fmt.Errorf("a fallback model has no name")
	}
	switch c.AnswerFormat {
	case FormatSchema, FormatObject, FormatText:
		return nil
	}
	return fmt.Errorf("answer format %q: want json_schema, json_object or text", c.AnswerFormat)
}

// models are all that may be asked, in order.
func (c Config) models() []string { return append([]string{c.Model}, c.Fallbacks...) }

// validateBaseURL does not repeat the URL: a wrong one may hold a password.
func validateBaseURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return fmt.Errorf("no model endpoint is named: set the base URL")
	case err != nil || u.Host == "":
		return fmt.Errorf("base URL of the model endpoint cannot be read: want a form like https://host/v1")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("base URL of the model endpoint: want https:// or http://")
	case u.User != nil:
		return fmt.Errorf("base URL of the model endpoint holds a user or password: use the API key")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("base URL of the model endpoint holds a query or fragment: want a form like https://host/v1")
	}
	return nil
}
