package wiring

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

// Rewriter returns the client of the configured rewrite providers.
func Rewriter(lg *slog.Logger, pipeline *redaction.Pipeline, cfg *config.Config) (*provider.Rewriter, error) {
	openai := []rewrite.AdapterKind{rewrite.OpenAIResponses, rewrite.OpenAIChat}
	providers := map[string]provider.Provider{
		"openai": {
			BaseURL: cfg.Rewrite.OpenAI.BaseURL, APIKey: cfg.Rewrite.OpenAI.APIKey, APIKeyOld: cfg.Rewrite.OpenAI.APIKeyOld, Adapters: openai,
		},
		"google": {
			BaseURL: cfg.Rewrite.Google.BaseURL, APIKey: cfg.Rewrite.Google.APIKey, Adapters: []rewrite.AdapterKind{rewrite.GeminiGenerate},
		},
		"other": {
			BaseURL: cfg.Rewrite.Other.BaseURL, APIKey: cfg.Rewrite.Other.APIKey, Adapters: openai, NoBatches: !cfg.Rewrite.Other.Batches,
		},
	}
	for name, p := range providers {
		if p.BaseURL == "" {
			delete(providers, name)
		}
	}
	return provider.New(lg, pipeline, provider.Config{
		Providers: providers, Timeout: cfg.Rewrite.Timeout, MaxAnswerTokens: cfg.Rewrite.MaxAnswerTokens,
	})
}

// RewriteRuns returns the profile with the overrides of the configuration, and the
// interval of each worker. The error has class CONFIG_INVALID.
func RewriteRuns(of config.Rewrite) (rewrite.RunConfig, map[rewrite.Worker]time.Duration, error) {
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
