package config

import (
	"slices"

	"github.com/criticizer/criticizer/internal/secret"
)

func (r Rewrite) check(p *problems) {
	r.Run.check(p)
	r.Batch.check(p)
	r.Route.check(p)
	p.positive("rewrite.timeout", int64(r.Timeout))
	p.positive("rewrite.max_answer_tokens", int64(r.MaxAnswerTokens))
	p.add(r.OpenAI.APIKeyOld.IsSet() && !r.OpenAI.APIKey.IsSet(), "CRITICIZER_REWRITE_OPENAI_API_KEY_OLD", "is set without a key that replaces it",
		"set CRITICIZER_REWRITE_OPENAI_API_KEY, or unset both")
	checkRewriteURL(p, "rewrite.openai.base_url", r.OpenAI.BaseURL, r.OpenAI.APIKey)
	checkRewriteURL(p, "rewrite.google.base_url", r.Google.BaseURL, r.Google.APIKey)
	checkRewriteURL(p, "rewrite.other.base_url", r.Other.BaseURL, r.Other.APIKey)
}

// checkRewriteURL: a key must not cross a network in clear (security 9.3). A
// provider without a key is no problem as long as no job names it.
func checkRewriteURL(p *problems, field, base string, key secret.Value) {
	if base == "" {
		return
	}
	u := p.url(field, base)
	p.add(u != nil && u.Scheme == "http" && !loopback(u.Hostname()) && key.IsSet(), field, "would send its key in clear to another host", "use https, or unset the key")
}

func (r RewriteRun) check(p *problems) {
	p.oneOf("rewrite.run.profile", r.Profile, "dev", "stage", "prod")
	p.notNegative("rewrite.run.max_jobs_per_run", int64(r.MaxJobsPerRun))
	p.notNegative("rewrite.run.max_runtime_seconds", int64(r.MaxRuntimeSeconds))
	p.notNegative("rewrite.run.claim_timeout_seconds", int64(r.ClaimTimeoutSeconds))
	p.notNegative("rewrite.run.async_every", int64(r.AsyncEvery))
	p.positive("rewrite.run.submit_every", int64(r.SubmitEvery))
	p.positive("rewrite.run.collect_every", int64(r.CollectEvery))
	p.positive("rewrite.run.concurrency", int64(r.Concurrency))
	p.add(slices.ContainsFunc(r.RetryBackoffSeconds, func(n int) bool { return n < 1 }), "rewrite.run.retry_backoff_seconds",
		"holds a wait below 1 second", "write some such as [900, 7200]")
}

func (b RewriteBatch) check(p *problems) {
	p.positive("rewrite.batch.max_requests", int64(b.MaxRequests))
	p.positive("rewrite.batch.max_bytes", int64(b.MaxBytes))
	p.positive("rewrite.batch.max_enqueued_tokens", int64(b.MaxEnqueuedTokens))
	p.positive("rewrite.batch.lease", int64(b.Lease))
	p.positive("rewrite.batch.timeout", int64(b.Timeout))
}

func (r RewriteRoute) check(p *problems) {
	p.oneOf("rewrite.route.provider", r.Provider, "openai", "google", "other")
	p.oneOf("rewrite.route.adapter_kind", r.AdapterKind, "openai_responses", "openai_chat", "gemini_generate")
	p.require("rewrite.route.model", r.Model, "name a model of the provider")
	p.require("rewrite.route.prompt_version", r.PromptVersion, "write v1")
	p.require("rewrite.route.policy_version", r.PolicyVersion, "name the policy's version")
	p.oneOf("rewrite.route.execution_mode", r.ExecutionMode, "batch", "async")
}
