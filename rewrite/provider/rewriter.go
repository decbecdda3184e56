// Package provider has models rewrite messages for the complaint_rewrite queue, one by
// one or in batches, over the wire formats of several providers.
//
// It accepts only [redaction.Text], checks every request and every line of a batch
// with the redaction pipeline before it is sent, and trusts no answer. A request goes
// only to an endpoint of the configuration, never to another URL of a job's row. It retries
// nothing, and a provider's rate limit is an error like any other: the queue decides.
// The prompts are the files in prompts.
//
// Read [Rewriter.Rewrite] first, then adapter.go, one file per wire format, batch.go, and check.go
// for what an answer may have. foreign.go reads what providers send.
package provider

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
)

// Config configures the providers.
type Config struct {
	// Providers are the providers of routing decisions, by name. There is no default.
	Providers map[string]Provider
	// Installation is the name of this installation in the metadata of its batches.
	Installation string
	// Timeout bounds one call.
	Timeout time.Duration
	// MaxAnswerTokens bounds one answer, including the reasoning tokens.
	MaxAnswerTokens int
}

// A Provider is one model endpoint.
type Provider struct {
	// BaseURL is the URL before the paths of its API. Required.
	BaseURL string
	// APIKey is sent with every request. Unset for servers without keys.
	APIKey secret.Value
}

// A Rewriter calls all providers. Its methods may be called concurrently.
type Rewriter struct {
	pipeline  *redaction.Pipeline
	cfg       Config
	endpoints map[string]*endpoint.Endpoint // by provider
}

// New returns a rewriter for the providers of cfg. It makes no call. Its errors have
// class [failure.ConfigInvalid].
func New(lg *slog.Logger, pipeline *redaction.Pipeline, cfg Config) (r *Rewriter, err error) {
	r = &Rewriter{pipeline: pipeline, cfg: cfg, endpoints: map[string]*endpoint.Endpoint{}}
	for name, p := range cfg.Providers {
		keyHeader := "" // a bearer token
		if name == "google" {
			keyHeader = "X-Goog-Api-Key"
		}
		r.endpoints[name], err = endpoint.New(lg, pipeline, endpoint.Config{
			BaseURL: p.BaseURL, APIKey: p.APIKey, KeyHeader: keyHeader, Dialect: "auto", Timeout: cfg.Timeout,
		})
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "rewrite provider %s: %w", name, err)
		}
	}
	return r, nil
}

// Rewrite makes one call and returns the answer, unchecked. The error has class
// [failure.AdapterUnsupported] if the configuration has no endpoint for the decision.
func (r *Rewriter) Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (string, error) {
	endpoint, a, err := r.open(to)
	if err != nil {
		return "", err
	}
	p, err := r.prompt(to, item)
	if err != nil {
		return "", err
	}
	if to.AdapterKind == rewrite.OpenAIChat {
		return r.chat(ctx, endpoint, p)
	}
	return a.ask(ctx, endpoint, p)
}

// open returns the endpoint and the adapter of a decision. A decision with another URL than the
// configured one is refused, so that a row of the database cannot redirect the key.
func (r *Rewriter) open(to rewrite.RoutingDecision) (*endpoint.Endpoint, adapter, error) {
	a := adapters[to.AdapterKind]
	e, configured := r.endpoints[to.Provider]
	switch {
	case !configured || !slices.Contains(a.providers, to.Provider):
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "provider %q is not configured for adapter %q", to.Provider, to.AdapterKind)
	case to.BaseURL != "" && strings.TrimRight(to.BaseURL, "/") != strings.TrimRight(r.cfg.Providers[to.Provider].BaseURL, "/"):
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "the job's base URL is not the one configured for provider %s", to.Provider)
	}
	return e, a, nil
}

// prompt renders item, if the pipeline verifies all of its texts. The names of
// preferences are not redacted, so they may only be identifiers.
func (r *Rewriter) prompt(to rewrite.RoutingDecision, item rewrite.Item) (prompt, error) {
	texts := []redaction.Text{item.Text}
	for name, t := range item.Preferences {
		if !rewrite.PreferenceName.MatchString(name) {
			return prompt{}, failure.Errorf(failure.InputInvalid, "the name of a preference is not made of letters, digits and _.-")
		}
		texts = append(texts, t)
	}
	if err := r.pipeline.VerifyTexts(texts...); err != nil {
		return prompt{}, err
	}
	p, err := render(to.PromptVersion, item)
	p.model, p.maxAnswerTokens = to.Model, r.cfg.MaxAnswerTokens
	return p, err
}

// Models lists the models of a provider: a check of endpoint and key that costs nothing.
// For Google's own protocol the list is empty. Errors have the class that a rewrite
// would have met.
func (r *Rewriter) Models(ctx context.Context, provider string) (models []string, err error) {
	endpoint, configured := r.endpoints[provider]
	if !configured {
		return nil, failure.Errorf(failure.ConfigInvalid, "provider %q is not configured", provider)
	}
	var list json.RawMessage
	_, err = endpoint.Call(ctx, http.MethodGet, "/models", nil, &list)
	for _, m := range objectOf(list).list("data") {
		models = append(models, objectOf(m).text("id"))
	}
	return models, err
}
