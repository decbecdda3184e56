package rewrite

import (
	"fmt"
	"net/url"
	"regexp"
)

// An ExecutionMode is how a job is sent to its provider (rewrite 9).
type ExecutionMode string

// The execution modes.
const (
	Async ExecutionMode = "async" // one call per job
	Batch ExecutionMode = "batch" // many jobs in one batch, collected later
)

// An AdapterKind is a wire format.
type AdapterKind string

// The adapters of this build. A job with another adapter fails when it is executed.
const (
	OpenAIResponses AdapterKind = "openai_responses"
	OpenAIChat      AdapterKind = "openai_chat"
	GeminiGenerate  AdapterKind = "gemini_generate"
)

// A RoutingDecision is the provider, model and mode of a job (rewrite 4). It is made once
// and applies to all attempts: a job never falls back to another provider (rewrite 8.2).
// It cannot hold text of the message.
type RoutingDecision struct {
	Provider    string      `json:"provider"` // openai, google or other
	AdapterKind AdapterKind `json:"adapter_kind"`
	// BaseURL is the URL before the adapter's paths; empty for the provider's own.
	BaseURL       string        `json:"base_url,omitempty"`
	Model         string        `json:"model"`
	PromptVersion string        `json:"prompt_version"`
	PolicyVersion string        `json:"policy_version"`
	Mode          ExecutionMode `json:"execution_mode"`
	CacheEligible bool          `json:"cache_eligible"`
	// MaxRetries bounds the attempts after the first; nil leaves them to the job.
	MaxRetries *int `json:"max_retries,omitempty"`
}

// ModelKey names the model of the decision, in one wire format.
func (d RoutingDecision) ModelKey() string {
	return d.Provider + " " + string(d.AdapterKind) + " " + d.Model
}

// Validate returns an error about the first invalid field.
func (d RoutingDecision) Validate() error {
	for _, required := range []struct{ field, value string }{
		{"provider", d.Provider},
		{"adapter_kind", string(d.AdapterKind)},
		{"model", d.Model},
		{"prompt_version", d.PromptVersion},
		{"policy_version", d.PolicyVersion},
	} {
		if !name.MatchString(required.value) {
			return fmt.Errorf("routing_decision.%s is not a name of at most 128 characters without spaces", required.field)
		}
	}
	if d.BaseURL != "" {
		if u, err := url.Parse(d.BaseURL); err != nil || u.Host == "" || u.User != nil || len(d.BaseURL) > maxURL {
			return fmt.Errorf("routing_decision.base_url is no URL of a server: write one such as https://api.openai.com/v1")
		}
	}
	switch {
	case d.Mode != Async && d.Mode != Batch:
		return fmt.Errorf("routing_decision.execution_mode is neither %s nor %s", Async, Batch)
	case d.MaxRetries != nil && (*d.MaxRetries < 0 || *d.MaxRetries > MostAttempts):
		return fmt.Errorf("routing_decision.max_retries is %d: want 0 to %d", *d.MaxRetries, MostAttempts)
	}
	return nil
}

// maxURL bounds a URL in bytes.
const maxURL = 190

// name matches the names in a decision: they must not hold text. The database has the
// same rule.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)
