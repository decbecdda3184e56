package assembly

import (
	"log/slog"

	"github.com/criticizer/criticizer/config"
	"github.com/criticizer/criticizer/llm/rewriter"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
)

// Rewriter has models rewrite; what it sends passes the pipeline's guard. Only
// the providers of the configuration are ever asked.
func Rewriter(lg *slog.Logger, pipeline *redaction.Pipeline, cfg *config.Config) (*rewriter.Rewriter, error) {
	openai := []rewrite.AdapterKind{rewrite.OpenAIResponses, rewrite.OpenAIChat}
	providers := map[string]rewriter.Provider{
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
	return rewriter.New(lg, pipeline, rewriter.Config{
		Providers: providers, Timeout: cfg.Rewrite.Timeout, MaxAnswerTokens: cfg.Rewrite.MaxAnswerTokens,
	})
}
