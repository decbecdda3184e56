package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/wiring"
)

// webhook asks for a sign of life and posts nothing.
func (p patient) webhook(ctx context.Context) []diagnosis {
	hook, err := wiring.Webhook(quiet, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct CRITICIZER_WEBHOOK_URL and section webhook of the configuration")}
	}
	if err := hook.Ping(ctx); err != nil {
		return []diagnosis{failing(err, "check that the service at CRITICIZER_WEBHOOK_URL is up and that this machine may reach it; mails go on without it")}
	}
	return []diagnosis{well("somebody answers at its URL; whether they take messages only a message can tell")}
}

func (p patient) swarm(ctx context.Context) []diagnosis {
	server, err := wiring.Swarm(quiet, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct section swarm of the configuration")}
	}
	if err := server.Ping(ctx); err != nil {
		return []diagnosis{failing(err, "check that P4 Code Review is up at swarm.url, and that CRITICIZER_SWARM_TICKET is one of swarm.user for all hosts (p4 login -a -p); mails go on without it")}
	}
	return []diagnosis{well("%s lists reviews for user %s", p.cfg.Swarm.URL, p.cfg.Swarm.User)}
}

// A rewriteProvider is one that jobs may be sent to.
type rewriteProvider struct {
	name, url string
	key       secret.Value
}

// rewriteProviders are those with a key, and the one that jobs go to by default: a
// provider that has neither is only there because its address has a default.
func (p patient) rewriteProviders() []rewriteProvider {
	r := p.cfg.Rewrite
	return slices.DeleteFunc([]rewriteProvider{
		{"openai", r.OpenAI.BaseURL, r.OpenAI.APIKey},
		{"google", r.Google.BaseURL, r.Google.APIKey},
		{"other", r.Other.BaseURL, r.Other.APIKey},
	}, func(of rewriteProvider) bool {
		return of.url == "" || !of.key.IsSet() && of.name != r.Route.Provider && of.name != "other"
	})
}

// rewrites has each provider list its models, which costs nothing.
func (p patient) rewrites(ctx context.Context) []diagnosis {
	pipeline, err := wiring.Pipeline(p.cfg, p.cfg.Redaction.Key)
	if err != nil {
		return []diagnosis{failing(err, "set CRITICIZER_REDACTION_KEY to 16 random bytes or more")}
	}
	rewriter, err := wiring.Rewriter(quiet, pipeline, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct section rewrite of the configuration")}
	}
	var found []diagnosis
	for _, of := range p.rewriteProviders() {
		models, err := rewriter.Models(ctx, of.name)
		found = append(found, p.provider(of, models, err))
	}
	return found
}

// provider says how a provider is that lists these models. Not every one lists all
// it has.
func (p patient) provider(of rewriteProvider, models []string, err error) diagnosis {
	r := p.cfg.Rewrite.Route
	missing := slices.DeleteFunc([]string{r.Model, r.FullReframeModel}, func(model string) bool {
		return model == "" || slices.Contains(models, model)
	})
	switch {
	case err != nil:
		return failing(fmt.Errorf("provider %s: %w", of.name, err),
			fmt.Sprintf("check rewrite.%s.base_url, that this machine may reach it, and CRITICIZER_REWRITE_%s_API_KEY", of.name, strings.ToUpper(of.name)))
	case of.name == r.Provider && len(models) > 0 && len(missing) > 0:
		return warning("check the spelling of rewrite.route.model and rewrite.route.full_reframe_model, and that the key may use them",
			"provider %s does not list %s among its %d models", of.name, strings.Join(missing, ", "), len(models))
	}
	return well("provider %s answers, and takes the key", of.name)
}
