package settings

import (
	"cmp"
	"log/slog"
	"maps"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

// RewriteProviders returns the configured rewrite providers by name.
func (cfg *Config) RewriteProviders() map[string]provider.Provider {
	r := cfg.Rewrite
	openai := []rewrite.AdapterKind{rewrite.OpenAIResponses, rewrite.OpenAIChat}
	providers := map[string]provider.Provider{
		"openai": {BaseURL: r.OpenAI.BaseURL, APIKey: r.OpenAI.APIKey, APIKeyOld: r.OpenAI.APIKeyOld, Adapters: openai},
		"google": {BaseURL: r.Google.BaseURL, APIKey: r.Google.APIKey, Adapters: []rewrite.AdapterKind{rewrite.GeminiGenerate}},
		"other":  {BaseURL: r.Other.BaseURL, APIKey: r.Other.APIKey, Adapters: openai, NoBatches: !r.Other.Batches},
	}
	maps.DeleteFunc(providers, func(_ string, p provider.Provider) bool { return p.BaseURL == "" })
	return providers
}

// NewRewriter returns the client of the configured rewrite providers.
func (cfg *Config) NewRewriter(lg *slog.Logger, pipeline *redaction.Pipeline) (*provider.Rewriter, error) {
	return provider.New(lg, pipeline, provider.Config{
		Providers: cfg.RewriteProviders(), Timeout: cfg.Rewrite.Timeout, MaxAnswerTokens: cfg.Rewrite.MaxAnswerTokens,
	})
}

// RewriteRuns returns the profile with the overrides of the configuration, and the
// interval of each worker. The error has class CONFIG_INVALID.
func RewriteRuns(of Rewrite) (rewrite.RunConfig, map[rewrite.Worker]time.Duration, error) {
	c := of.Run
	profile, err := rewrite.LoadProfile(c.Profile)
	if err != nil {
		return rewrite.RunConfig{}, nil, failure.Errorf(failure.ConfigInvalid, "rewrite.run.profile: %w", err)
	}
	run := profile.RunConfig
	run.MaxJobsPerRun = cmp.Or(c.MaxJobsPerRun, run.MaxJobsPerRun)
	run.MaxRuntimeSeconds = cmp.Or(c.MaxRuntimeSeconds, run.MaxRuntimeSeconds)
	run.ClaimTimeoutSeconds = cmp.Or(c.ClaimTimeoutSeconds, run.ClaimTimeoutSeconds)
	if len(c.RetryBackoffSeconds) > 0 {
		run.RetryBackoffSeconds = c.RetryBackoffSeconds
	}
	if err := cmp.Or(run.Validate(), run.Covers(of.Timeout)); err != nil {
		return run, nil, failure.Errorf(failure.ConfigInvalid, "rewrite.run: %w", err)
	}
	return run, map[rewrite.Worker]time.Duration{
		rewrite.Submitter: cmp.Or(c.SubmitEvery, time.Duration(profile.SubmitSeconds)*time.Second),
		rewrite.Collector: cmp.Or(c.CollectEvery, time.Duration(profile.CollectSeconds)*time.Second),
		rewrite.AsyncLane: cmp.Or(c.AsyncEvery, time.Duration(profile.ScheduleSeconds)*time.Second),
	}, nil
}
