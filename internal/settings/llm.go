package settings

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// LLM configures the model endpoint and the limits of its use.
type LLM struct {
	// OpenAI-compatible endpoint. With http to another host no key is sent, and
	// allow_cleartext must name llm. For Azure, https://NAME.openai.azure.com/openai/v1,
	// or the URL of the deployment with ?api-version=VERSION.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1" check:"http-url"`
	// Model name, as the endpoint knows it.
	Model string `yaml:"model" required:"a model of the endpoint"`
	// Whether the endpoint is a simulation, as in a demonstration: mails, posts,
	// exported reports and criticizer say that no model reads the changes, and no test run passes.
	StandIn bool `yaml:"stand_in" default:"false"`
	// Models of the same endpoint that are called, in this order, if the previous
	// one cannot answer. The report names them.
	FallbackModels []string `yaml:"fallback_models"`
	// Family of the server, which decides fields and formats of requests: auto detects
	// it (docs/endpoints.md).
	Dialect string `yaml:"dialect" default:"auto" oneof:"auto openai azure anthropic gemini openrouter vllm llamacpp ollama lmstudio generic"`
	// API of the endpoint: chat (/chat/completions) or responses (/responses).
	API string `yaml:"api" default:"chat" oneof:"chat responses"`
	// Output format that the endpoint is asked for: json_schema, json_object, text, or
	// auto for the best one that its dialect enforces. If the model does not support one,
	// the next is used. Every answer is checked against the same schema.
	AnswerFormat string `yaml:"answer_format" default:"auto" oneof:"auto json_schema json_object text"`
	// Longest silence of the endpoint during a call, before or within its answer. A call
	// takes at most four times as long.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
	// Number of tokens that the server reads in one call, prompt and answer. 0: the
	// server is asked, if it has a way to tell.
	ContextTokens int `yaml:"context_tokens" default:"0" check:"not-negative"`
	// Largest prompt; a larger change takes several calls.
	MaxPromptTokens int `yaml:"max_prompt_tokens" default:"24000" check:"positive"`
	// Largest answer, including the thinking of a reasoning model.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"16384" check:"positive"`
	// Effort of a reasoning model, such as low, medium or high. Unset: the endpoint's.
	ReasoningEffort string `yaml:"reasoning_effort"`
	// Sampling temperature. Unset: the endpoint's; reasoning models refuse one.
	Temperature *float64 `yaml:"temperature"`
	// Nucleus sampling. Unset: the endpoint's.
	TopP *float64 `yaml:"top_p"`
	// Seed of the sampling. Unset: the endpoint's.
	Seed *int `yaml:"seed"`
	// HTTP headers of every request, each as 'Name: value', without secrets.
	Headers []string `yaml:"headers"`
	// Other fields of every request, as a JSON object such as '{"top_k": 20}'. They
	// replace the product's own.
	Extra string `yaml:"extra"`
	// Token budget of one review, failed attempts included; the report names what
	// was not reviewed for lack of tokens.
	MaxTokensPerReview int `yaml:"max_tokens_per_review" default:"300000"`
	// Token budget of a day (UTC) for all workers. The default is enough for 100
	// reviews of max_tokens_per_review. 0: no limit.
	MaxTokensPerDay int `yaml:"max_tokens_per_day" default:"30000000" check:"not-negative"`
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
	Verify string `yaml:"verify" default:"high" oneof:"off on low medium high critical"`
	// Code around the change in the calls that review it (docs/context.md): none, file
	// (from the changed files), or all (from files beside them, too).
	ReviewContext string `yaml:"review_context" default:"file" oneof:"none file all"`
	// Code around the change in the calls of the verification pass.
	VerifyContext string `yaml:"verify_context" default:"all" oneof:"none file all"`
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

// Check implements the checks of package config.
func (l LLM) Check(p *config.Problems) {
	call := l.MaxPromptTokens + l.MaxAnswerTokens
	p.Add(l.MaxTokensPerReview < call, "max_tokens_per_review", "is less than one call needs",
		fmt.Sprintf("write at least %d, or lower the limits of prompt and answer", call))
	_, err := l.ExtraFields()
	p.Add(err != nil, "extra", "is not a JSON object", `write one such as '{"top_k": 20}'`)
	_, err = l.HeaderFields()
	p.Add(err != nil, "headers", "holds an entry that is not a header", "write each as 'Name: value'")
	p.Replacement("api_key_old", l.APIKeyOld, "api_key", l.APIKey)
	// http to another host is a private server without a key; https is a provider.
	if u, err := url.Parse(l.BaseURL); err == nil && u.Scheme == "https" && !config.Loopback(u.Hostname()) {
		p.RequireSecret("api_key", l.APIKey, "the key of "+u.Hostname())
	}
}

// Connections returns the connection to the endpoint.
func (l LLM) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", l.BaseURL, "api_key", l.APIKey)}
}

// ExtraFields returns the fields of Extra.
func (l LLM) ExtraFields() (fields map[string]any, err error) {
	if l.Extra == "" {
		return nil, nil
	}
	return fields, json.Unmarshal([]byte(l.Extra), &fields)
}

// HeaderFields returns Headers by name.
func (l LLM) HeaderFields() (map[string]string, error) {
	headers := map[string]string{}
	for _, h := range l.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("read llm.headers: an entry is not a header")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// Rules configures the rule packs of teams (docs/rules.md). Stage fetch reads them.
type Rules struct {
	// Depot paths of up to 20 files, which p4.allowed_paths has to cover. The revision
	// before the change is used. Their packs add to those of llm.rules and the shipped
	// ones.
	Depot []string `yaml:"depot"`
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
