package wiring

import (
	"log/slog"

	"github.com/criticizer/criticizer/internal/config"
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
