package settings

import (
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// Rewrite configures the providers and limits of the complaint rewrite queue
// (docs/rewrite.md). A job that names another URL than its provider's is refused.
type Rewrite struct {
	// Timeout of one call of a provider.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
	// Largest answer, including the thinking of a reasoning model.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"4000" check:"positive"`
	// The limits of one run of a worker of the rewrite queue, and the intervals between runs.
	// For a field that is 0 or empty the profile decides.
	Run RewriteRun `yaml:"run"`
	// The limits of batches. The defaults are those of OpenAI.
	Batch RewriteBatch `yaml:"batch"`
	// The routing of jobs that name no route.
	Route RewriteRoute `yaml:"route"`
	// Provider openai, with the adapters openai_responses and openai_chat.
	OpenAI RewriteOpenAI `yaml:"openai"`
	// Provider google, with the adapter gemini_generate.
	Google RewriteGoogle `yaml:"google"`
	// Provider other, a server with the protocol of OpenAI and the adapters openai_responses
	// and openai_chat.
	Other RewriteOther `yaml:"other"`
}

// RewriteRun configures the limits of one run of a worker of the rewrite queue, and
// the intervals between runs. For a field that is 0 or empty the profile decides.
type RewriteRun struct {
	// Defaults of the fields below: dev, stage or prod (docs/rewrite.md).
	Profile string `yaml:"profile" default:"prod" oneof:"dev stage prod"`
	// Largest number of jobs that one run claims.
	MaxJobsPerRun int `yaml:"max_jobs_per_run" default:"0" check:"not-negative"`
	// Seconds after which a run claims no more jobs.
	MaxRuntimeSeconds int `yaml:"max_runtime_seconds" default:"0" check:"not-negative"`
	// Seconds after which a claim expires and its job is queued again. More than
	// max_runtime_seconds and rewrite.timeout together.
	ClaimTimeoutSeconds int `yaml:"claim_timeout_seconds" default:"0" check:"not-negative"`
	// Seconds between a failed attempt of a job and the next: after the first, the
	// second, and so on; the last value repeats.
	RetryBackoffSeconds []int `yaml:"retry_backoff_seconds"`
	// How often the async lane runs.
	AsyncEvery time.Duration `yaml:"async_every" default:"0s" check:"not-negative"`
	// How often batches are submitted.
	SubmitEvery time.Duration `yaml:"submit_every" default:"0s" check:"not-negative"`
	// How often the results of batches are collected.
	CollectEvery time.Duration `yaml:"collect_every" default:"0s" check:"not-negative"`
	// Number of concurrent jobs of the async lane in one worker.
	Concurrency int `yaml:"concurrency" default:"4" check:"positive"`
}

// RewriteBatch configures the limits of batches. The defaults are those of OpenAI.
type RewriteBatch struct {
	// Largest number of requests in one batch.
	MaxRequests int `yaml:"max_requests" default:"50000" check:"positive"`
	// Largest input file.
	MaxBytes config.Size `yaml:"max_bytes" default:"200MB" check:"positive"`
	// Largest number of tokens of one model in batches at the provider; the limit of
	// the account.
	MaxEnqueuedTokens int `yaml:"max_enqueued_tokens" default:"2000000" check:"positive"`
	// How long one worker has a batch to itself to submit or collect it. If it is
	// not known whether the provider has a batch, it is looked up after that time.
	Lease time.Duration `yaml:"lease" default:"10m" check:"positive"`
	// How long a batch may be at the provider before it is canceled.
	Timeout time.Duration `yaml:"timeout" default:"30h" check:"positive"`
}

// RewriteRoute configures the routing of jobs that name no route.
type RewriteRoute struct {
	// Provider: openai, google or other.
	Provider string `yaml:"provider" default:"openai" oneof:"openai google other"`
	// Protocol: openai_responses, openai_chat or gemini_generate.
	AdapterKind string `yaml:"adapter_kind" default:"openai_responses" oneof:"openai_responses openai_chat gemini_generate"`
	// Model that rewrites.
	Model string `yaml:"model" required:"a model of the provider"`
	// Model that rewrites with strength full_reframe. Empty: the same.
	FullReframeModel string `yaml:"full_reframe_model"`
	// Version of the prompts.
	PromptVersion string `yaml:"prompt_version" default:"v1" required:"v1"`
	// Version of the rewriting policy, for the record.
	PolicyVersion string `yaml:"policy_version" default:"v1" required:"the version of the policy"`
	// batch: many jobs in one request, at half the price, within a day. async: one
	// call per job.
	ExecutionMode string `yaml:"execution_mode" default:"batch" oneof:"batch async"`
}

// RewriteOpenAI configures provider openai, with the adapters openai_responses and
// openai_chat.
type RewriteOpenAI struct {
	// Base URL of the API. Empty: the provider is not used.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1"`
	// API key of the provider. The key of reviews is not used.
	APIKey secret.Value `yaml:"api_key"`
	// Previous key, used during a rotation.
	APIKeyOld secret.Value `yaml:"api_key_old"`
}

// RewriteGoogle configures provider google, with the adapter gemini_generate.
type RewriteGoogle struct {
	// Base URL of the API. Empty: the provider is not used.
	BaseURL string `yaml:"base_url" default:"https://generativelanguage.googleapis.com/v1beta"`
	// API key of the provider.
	APIKey secret.Value `yaml:"api_key"`
}

// RewriteOther configures provider other, a server with the protocol of OpenAI and
// the adapters openai_responses and openai_chat.
type RewriteOther struct {
	// Base URL of the API. Empty: the provider is not used.
	BaseURL string `yaml:"base_url"`
	// Whether the server has the batch API.
	Batches bool `yaml:"batches" default:"false"`
	// API key of the provider. Unset for a server without authentication.
	APIKey secret.Value `yaml:"api_key"`
}

// Check implements the checks of package config.
func (r RewriteRun) Check(p *config.Problems) {
	p.Add(slices.ContainsFunc(r.RetryBackoffSeconds, func(n int) bool { return n < 1 }), "retry_backoff_seconds",
		"holds a wait below 1 second", "write some such as [900, 7200]")
}

// Check implements the checks of package config. A provider without a key is valid: perhaps
// no job names it.
func (r RewriteOpenAI) Check(p *config.Problems) {
	p.Replacement("api_key_old", r.APIKeyOld, "api_key", r.APIKey)
	checkBaseURL(p, r.BaseURL)
}

// Check implements the checks of package config.
func (r RewriteGoogle) Check(p *config.Problems) { checkBaseURL(p, r.BaseURL) }

// Check implements the checks of package config.
func (r RewriteOther) Check(p *config.Problems) { checkBaseURL(p, r.BaseURL) }

// Connections returns the connection to the provider.
func (r RewriteOpenAI) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", r.BaseURL, "api_key", r.APIKey)}
}

// Connections returns the connection to the provider.
func (r RewriteGoogle) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", r.BaseURL, "api_key", r.APIKey)}
}

// Connections returns the connection to the provider.
func (r RewriteOther) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", r.BaseURL, "api_key", r.APIKey)}
}

func checkBaseURL(p *config.Problems, url string) {
	if url != "" {
		p.URL("base_url", url)
	}
}
