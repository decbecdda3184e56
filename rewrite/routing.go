package rewrite

import (
	"fmt"
	"net/url"
)

// An ExecutionMode says how a job reaches its provider (queue 9).
type ExecutionMode string

// The execution modes.
const (
	Async ExecutionMode = "async" // one call for each job
	Batch ExecutionMode = "batch" // many jobs in one batch, collected later
)

// An AdapterKind names the protocol in which a provider is spoken to.
type AdapterKind string

// The adapters this build has. A job may name another: it fails when it is
// executed, with a class of its own.
const (
	OpenAIResponses AdapterKind = "openai_responses"
	OpenAIChat      AdapterKind = "openai_chat"
	GeminiGenerate  AdapterKind = "gemini_generate"
)

// A RoutingDecision says who executes a job, and how (queue 4). It is made once,
// before the job is executed, and holds for all attempts: there is no other
// provider to fall back to (queue 8.2). It never holds text of the message.
type RoutingDecision struct {
	Provider    string      `json:"provider"` // openai, google or other
	AdapterKind AdapterKind `json:"adapter_kind"`
	// BaseURL is where the adapter's paths begin; empty is the provider's own.
	BaseURL       string        `json:"base_url,omitempty"`
	Model         string        `json:"model"`
	PromptVersion string        `json:"prompt_version"`
	PolicyVersion string        `json:"policy_version"`
	Mode          ExecutionMode `json:"execution_mode"`
	CacheEligible bool          `json:"cache_eligible"`
	MaxRetries    int           `json:"max_retries"`
}

// Validate reports the first field that a decision may not have so.
func (d RoutingDecision) Validate() error {
	for _, required := range []struct{ field, value string }{
		{"provider", d.Provider},
		{"adapter_kind", string(d.AdapterKind)},
		{"model", d.Model},
		{"prompt_version", d.PromptVersion},
		{"policy_version", d.PolicyVersion},
	} {
		if required.value == "" || len(required.value) > maxWord {
			return fmt.Errorf("routing_decision.%s has %d bytes: want 1 to %d", required.field, len(required.value), maxWord)
		}
	}
	if d.BaseURL != "" {
		if u, err := url.Parse(d.BaseURL); err != nil || u.Host == "" || u.User != nil || len(d.BaseURL) > maxWord {
			return fmt.Errorf("routing_decision.base_url is no URL of a server: write one such as https://api.openai.com/v1")
		}
	}
	switch {
	case d.Mode != Async && d.Mode != Batch:
		return fmt.Errorf("routing_decision.execution_mode is neither %s nor %s", Async, Batch)
	case d.MaxRetries < 0:
		return fmt.Errorf("routing_decision.max_retries is %d: want 0 or more", d.MaxRetries)
	}
	return nil
}

// maxWord bounds the words of a decision: they are names, and no place for text.
const maxWord = 200

// A RouteInput is all that a router learns of a job: ids, surface, strength and
// languages. It has no place for the message, which a router must not receive
// (queue 12).
type RouteInput struct {
	JobID           string
	RequestID       string
	RecipientUserID string
	Surface         Surface
	Strength        Strength
	Languages       LanguagePair
}

// A Router decides who executes jobs that came without a decision.
type Router struct {
	standard RoutingDecision
	models   map[Strength]string
}

// NewRouter returns the router that decides for standard, with the model that
// models names for the job's strength, if it names one.
func NewRouter(standard RoutingDecision, models map[Strength]string) (Router, error) {
	if err := standard.Validate(); err != nil {
		return Router{}, err
	}
	return Router{standard, models}, nil
}

// Route decides. The same input has the same decision.
func (r Router) Route(in RouteInput) RoutingDecision {
	decision := r.standard
	if model := r.models[in.Strength]; model != "" {
		decision.Model = model
	}
	return decision
}
