package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/wiring"
)

// webhook probes the URL and posts nothing.
func (i installation) webhook(ctx context.Context) []checkResult {
	if err := wiring.Webhook(quiet, i.cfg, nil).Ping(ctx); err != nil {
		return []checkResult{fail(err, "check that the service at CRITICIZER_WEBHOOK_URL is up and that this machine may reach it; mails are sent without it")}
	}
	return []checkResult{ok("the URL responds; whether it accepts messages is not checked")}
}

func (i installation) swarm(ctx context.Context) []checkResult {
	if err := wiring.Swarm(quiet, i.cfg, nil).Ping(ctx); err != nil {
		return []checkResult{fail(err, "check that P4 Code Review is up at swarm.url, and that CRITICIZER_SWARM_TICKET is one of swarm.user for all hosts (p4 login -a -p); mails are sent without it")}
	}
	return []checkResult{ok("%s lists reviews for user %s", i.cfg.Swarm.URL, i.cfg.Swarm.User)}
}

// A rewriteProvider is one that jobs may be sent to.
type rewriteProvider struct {
	name, url string
	key       secret.Value
}

// rewriteProviders returns the providers that have a key, and the default one. The
// URL of every provider has a default, so a URL does not mean that it is used.
func (i installation) rewriteProviders() []rewriteProvider {
	r := i.cfg.Rewrite
	return slices.DeleteFunc([]rewriteProvider{
		{"openai", r.OpenAI.BaseURL, r.OpenAI.APIKey},
		{"google", r.Google.BaseURL, r.Google.APIKey},
		{"other", r.Other.BaseURL, r.Other.APIKey},
	}, func(of rewriteProvider) bool {
		return of.url == "" || !of.key.IsSet() && of.name != r.Route.Provider && of.name != "other"
	})
}

// rewrites asks each provider for its models, which is free of charge.
func (i installation) rewrites(ctx context.Context) []checkResult {
	pipeline, err := wiring.Pipeline(i.cfg, i.cfg.Redaction.Key)
	if err != nil {
		return []checkResult{fail(err, "set CRITICIZER_REDACTION_KEY to 16 random bytes or more")}
	}
	rewriter, err := wiring.Rewriter(quiet, pipeline, i.cfg)
	if err != nil {
		return []checkResult{fail(err, "correct section rewrite of the configuration")}
	}
	if _, _, err := wiring.RewriteRuns(i.cfg.Rewrite); err != nil {
		return []checkResult{fail(err, "correct section rewrite.run of the configuration")}
	}
	var found []checkResult
	for _, of := range i.rewriteProviders() {
		models, err := rewriter.Models(ctx, of.name)
		found = append(found, i.provider(of, models, err))
	}
	return found
}

// provider judges the models that a provider lists. Not every provider lists all,
// so a missing one is only a warning.
func (i installation) provider(of rewriteProvider, models []string, err error) checkResult {
	r := i.cfg.Rewrite.Route
	missing := slices.DeleteFunc([]string{r.Model, r.FullReframeModel}, func(model string) bool {
		return model == "" || slices.Contains(models, model)
	})
	switch {
	case err != nil:
		return fail(fmt.Errorf("provider %s: %w", of.name, err),
			fmt.Sprintf("check rewrite.%s.base_url, that this machine may reach it, and CRITICIZER_REWRITE_%s_API_KEY", of.name, strings.ToUpper(of.name)))
	case of.name == r.Provider && len(missing) > 0:
		return warn("check the spelling of rewrite.route.model and rewrite.route.full_reframe_model, and that the key may use them",
			"provider %s does not list %s among its %d models", of.name, strings.Join(missing, ", "), len(models))
	}
	return ok("provider %s responds and accepts the key", of.name)
}
