package llm

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

// A VerifyMode selects the findings for the verification pass: none, all, or all from a
// severity on. The mode is then the name of that severity.
type VerifyMode string

// The verify modes that are not a severity.
const (
	VerifyOff VerifyMode = "off"
	VerifyOn  VerifyMode = "on"
)

// covers reports whether findings of severity s are verified.
func (m VerifyMode) covers(s review.Severity) bool {
	return m == VerifyOn || m != VerifyOff && s.Rank() <= review.Severity(m).Rank()
}

// Bounds of a Config.
const (
	// minPromptTokens has room for the instructions, the longest description and
	// the longest line, so that every line of a change fits in a call.
	minPromptTokens = 6_500
	maxConcurrency  = 64
)

// Config configures a [Reviewer]. Tokens are counted with the o200k vocabulary, which is an
// estimate for models with another vocabulary.
type Config struct {
	endpoint.Config `yaml:",inline"`
	// Model name, as the endpoint knows it.
	Model string `yaml:"model" required:"a model of the endpoint"`
	// Models of the same endpoint that are called, in this order, if the previous
	// one cannot answer. The report names them.
	Fallbacks []string `yaml:"fallback_models"`
	// Number of tokens that the server reads in one call, prompt and answer. 0: the
	// server is asked, if it has a way to tell.
	ContextTokens int `yaml:"context_tokens" default:"0" check:"not-negative"`
	// Largest prompt, at least 6,500; a larger change takes several calls. Models review small
	// prompts better.
	MaxPromptTokens int `yaml:"max_prompt_tokens" default:"18000"`
	// Largest answer, including the thinking of a reasoning model.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"8192" check:"positive"`
	// Other fields of every request, as a JSON object such as '{"temperature": 0}' or
	// '{"reasoning_effort": "low"}'. They replace the product's own.
	Extra string `yaml:"extra"`
	// Token budget of one review, failed attempts included; the report names what
	// was not reviewed for lack of tokens.
	MaxTokensPerReview int `yaml:"max_tokens_per_review" default:"300000"`
	// Lowest severity that is reported: low, medium, high or critical (docs/findings.md).
	// nitpick: also maintainability findings of severity low.
	MinSeverity review.Severity `yaml:"min_severity" default:"low" oneof:"nitpick low medium high critical"`
	// Largest number of findings of one review; the most severe are kept.
	MaxFindings int `yaml:"max_findings" default:"20" check:"positive"`
	// Whether a second call tries to refute the findings (verification pass): off,
	// on, or the lowest severity it is made for. It costs tokens and removes false
	// findings.
	Verify VerifyMode `yaml:"verify" default:"high" oneof:"off on low medium high critical"`
	// Code around the change in the calls that review it (docs/context.md): none, file
	// (from the changed files), or all (from files beside them, too).
	ReviewContext ContextMode `yaml:"review_context" default:"all" oneof:"none file all"`
	// Rule files, and directories of files that end in .yaml. They take precedence
	// over the shipped rules (docs/rules.md).
	RuleFiles []string `yaml:"rules"`
	// Rules are the rule packs, selected by path. Default none.
	Rules *rules.Set
	// Language of the findings, such as German.
	Language string `yaml:"language" default:"English"`
	// Number of concurrent model calls of one review, at most 64.
	Concurrency int `yaml:"concurrency" default:"2" check:"positive"`
}

// languageName matches a name, not a sentence: it becomes part of the instructions.
var languageName = regexp.MustCompile(`^[\pL][\pL ()-]{0,39}$`)

// Check implements the checks of package config.
func (c Config) Check(p *config.Problems) {
	call := c.MaxPromptTokens + c.MaxAnswerTokens
	p.Add(c.MaxPromptTokens < minPromptTokens, "max_prompt_tokens", fmt.Sprintf("%d is too small", c.MaxPromptTokens), fmt.Sprintf("write at least %d", minPromptTokens))
	p.Add(c.MaxTokensPerReview < call, "max_tokens_per_review", "is less than one call needs", fmt.Sprintf("write at least %d, or lower the limits of prompt and answer", call))
	_, err := c.requestFields()
	p.Add(err != nil, "extra", "is not a JSON object", `write one such as '{"temperature": 0}'`)
	p.Add(!languageName.MatchString(c.Language), "language", "is not the name of a language", "write one of at most 40 letters, such as German")
	p.Add(c.Concurrency > maxConcurrency, "concurrency", "is too large", fmt.Sprintf("write at most %d", maxConcurrency))
}

// requestFields returns the fields of every request, beside those of [endpoint.Request].
func (c Config) requestFields() (map[string]any, error) {
	fields := map[string]any{}
	if c.Extra == "" {
		return fields, nil
	}
	return fields, json.Unmarshal([]byte(c.Extra), &fields)
}

// Models returns the configured models in the order in which they are asked.
func (c Config) Models() []string { return append([]string{c.Model}, c.Fallbacks...) }
