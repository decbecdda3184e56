package config

import (
	"fmt"
	"net/url"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// LLM configures the model endpoint and the limits of its use.
type LLM struct {
	// OpenAI-compatible endpoint. With http to another host no key is sent, and
	// allow_cleartext must name llm.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1" check:"http-url"`
	// Model name, as the endpoint knows it.
	Model string `yaml:"model" required:"a model of the endpoint"`
	// Models of the same endpoint that are called, in this order, if the previous
	// one cannot answer. The report names them.
	FallbackModels []string `yaml:"fallback_models"`
	// Output format that the endpoint is asked for: json_schema, json_object or
	// text. If the model does not support one, the next is used. Every answer is
	// checked against the same schema.
	AnswerFormat string `yaml:"answer_format" default:"json_schema" oneof:"json_schema json_object text"`
	// Timeout of one model call.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
	// Largest prompt; a larger change takes several calls.
	MaxPromptTokens int `yaml:"max_prompt_tokens" default:"24000" check:"positive"`
	// Largest answer, including the thinking of a reasoning model.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"4000" check:"positive"`
	// Token budget of one review, failed attempts included; the report names what
	// was not reviewed for lack of tokens.
	MaxTokensPerReview int `yaml:"max_tokens_per_review" default:"200000"`
	// Token budget of a day (UTC) for all workers. 0: no limit.
	MaxTokensPerDay int `yaml:"max_tokens_per_day" default:"0" check:"not-negative"`
	// Price of a million prompt tokens. The report shows the cost of a review if
	// all prices it needs are set. 0: unknown.
	PricePerMillionPrompt float64 `yaml:"price_per_million_prompt" default:"0" check:"not-negative"`
	// Price of a million prompt tokens from the provider's cache.
	PricePerMillionCached float64 `yaml:"price_per_million_cached" default:"0" check:"not-negative"`
	// Price of a million answer tokens.
	PricePerMillionCompletion float64 `yaml:"price_per_million_completion" default:"0" check:"not-negative"`
	// Currency of the prices.
	PriceCurrency string `yaml:"price_currency" default:"USD"`
	// Lowest severity that is reported: low, medium, high or critical
	// (docs/findings.md).
	MinSeverity string `yaml:"min_severity" default:"low" oneof:"low medium high critical"`
	// Whether maintainability findings of severity low are reported.
	Nitpicks bool `yaml:"nitpicks" default:"false"`
	// Largest number of findings of one review; the most severe are kept.
	MaxFindings int `yaml:"max_findings" default:"20" check:"positive"`
	// Whether a second call tries to refute the findings (verification pass): off,
	// on, or the lowest severity it is made for. It costs tokens and removes false
	// findings.
	Verify string `yaml:"verify" default:"off" oneof:"off on low medium high critical"`
	// Rule files, and directories of files that end in .yaml. They take precedence
	// over the shipped rules (docs/rules.md).
	Rules []string `yaml:"rules"`
	// Language of the findings.
	Language string `yaml:"language" default:"English"`
	// Number of concurrent model calls of one review.
	Concurrency int `yaml:"concurrency" default:"2" check:"positive"`
	// API key of the endpoint. Unset for a server on this host without
	// authentication.
	APIKey secret.Value `yaml:"api_key" env:"OPENAI_API_KEY"`
	// Previous key, used during a rotation if the endpoint rejects the new one.
	APIKeyOld secret.Value `yaml:"api_key_old" env:"OPENAI_API_KEY_OLD"`
}

func (l LLM) check(p *problems) {
	call := l.MaxPromptTokens + l.MaxAnswerTokens
	p.add(l.MaxTokensPerReview < call, "llm.max_tokens_per_review", "is less than one call needs",
		fmt.Sprintf("write at least %d, or lower the limits of prompt and answer", call))
	p.replacement("OPENAI_API_KEY_OLD", l.APIKeyOld, "OPENAI_API_KEY", l.APIKey)
	// http to another host is a private server without a key; https is a provider.
	if u, err := url.Parse(l.BaseURL); err == nil && u.Scheme == "https" && !loopback(u.Hostname()) {
		p.requireSecret("OPENAI_API_KEY", l.APIKey, "the key of "+u.Hostname())
	}
}

// Redaction configures what is masked besides secrets, which always are.
type Redaction struct {
	// Whether mail addresses are masked in prompts.
	Emails bool `yaml:"emails" default:"false"`
	// Internal domains, such as corp.example.com, whose host names are masked.
	HostSuffixes []string `yaml:"host_suffixes"`
	// Whether private network addresses are masked.
	InternalIPs bool `yaml:"internal_ips" default:"false"`
	// Files with more rules, in the format that docs/redaction.md describes. The
	// examples of their rules are checked when a process starts.
	Rules []string `yaml:"rules"`
	// Key of the placeholder tags and of the seal on redacted changes: at least 16
	// random bytes, the same for the stages redact and llm.
	Key secret.Value `yaml:"key" required:"at least 16 random bytes"`
}
