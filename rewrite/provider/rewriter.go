// Package provider has models rewrite messages for the complaint_rewrite queue,
// one by one or in batches, over the wire formats of several providers.
//
// It takes nothing but [redaction.Text], shows every request and every line of a
// batch to a guard before it is sent, and trusts nothing that comes back. A
// request goes to an endpoint of the configuration only, whatever a job's row
// says. Nothing is tried twice here, and a provider's rate limit is an error
// like any other: the queue decides. The prompts are the files in prompts.
package provider

import (
	"context"
	"log/slog"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
)

// guard decides what may leave and what may come back; [redaction.Pipeline] is
// one. Its errors have a class and name no content.
type guard interface {
	// Verify refuses a change that the current redaction did not let pass.
	Verify(c redaction.Change) error
	// VerifyTexts refuses texts that the current redaction did not let pass.
	VerifyTexts(texts ...redaction.Text) error
	// Check takes the last look at a request before it is sent.
	Check(body []byte) error
	// VerifyAnswer refuses an answer with other placeholders or secrets than t has.
	VerifyAnswer(t redaction.Text, answer string) error
}

// A Rewriter speaks to all providers. It is safe for concurrent use.
type Rewriter struct {
	lg        *slog.Logger
	guard     guard
	cfg       Config
	prompts   map[string]prompts
	endpoints map[door]*llm.Endpoint
}

// A door is one provider spoken to in one wire format.
type door struct {
	provider string
	kind     rewrite.AdapterKind
}

// New returns a rewriter for the providers of cfg. It makes no call. Its errors
// have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard guard, cfg Config) (*Rewriter, error) {
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "rewriter has no guard: hand it the redaction pipeline")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	versions, err := loadPrompts()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	r := &Rewriter{lg: lg, guard: guard, cfg: cfg, prompts: versions, endpoints: map[door]*llm.Endpoint{}}
	for name, p := range cfg.Providers {
		for kind, a := range adapters {
			if !p.speaks(kind) {
				continue
			}
			endpoint, err := llm.NewEndpoint(lg, guard, llm.EndpointConfig{
				BaseURL: p.BaseURL, APIKey: p.APIKey, APIKeyOld: p.APIKeyOld, KeyHeader: a.keyHeader, Timeout: cfg.Timeout,
			})
			if err != nil {
				return nil, failure.Errorf(failure.ConfigInvalid, "rewrite provider %s: %w", name, err)
			}
			r.endpoints[door{name, kind}] = endpoint
		}
	}
	return r, nil
}

// Rewrite asks the model once and returns its answer, which nobody has judged. A
// decision that the configuration has no endpoint for is refused with class
// [failure.AdapterUnsupported].
func (r *Rewriter) Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (rewrite.Answer, error) {
	endpoint, a, err := r.open(to)
	if err != nil {
		return rewrite.Answer{}, err
	}
	p, err := r.prompt(to, item)
	if err != nil {
		return rewrite.Answer{}, err
	}
	return a.ask(ctx, endpoint, p)
}

// open finds the endpoint and the adapter of a decision.
func (r *Rewriter) open(to rewrite.RoutingDecision) (*llm.Endpoint, adapter, error) {
	a, known := adapters[to.AdapterKind]
	if !known {
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "there is no adapter %q", to.AdapterKind)
	}
	endpoint := r.endpoints[door{to.Provider, to.AdapterKind}]
	switch {
	case endpoint == nil:
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "provider %q is not configured for adapter %s", to.Provider, to.AdapterKind)
	case !r.cfg.Providers[to.Provider].has(to.BaseURL):
		return nil, a, failure.Errorf(failure.AdapterUnsupported, "the job's base URL is not the one configured for provider %s", to.Provider)
	}
	return endpoint, a, nil
}

// prompt puts item into words, if the guard vouches for all of its texts. The
// names of preferences have not passed redaction: they may be words only.
func (r *Rewriter) prompt(to rewrite.RoutingDecision, item rewrite.Item) (prompt, error) {
	texts := []redaction.Text{item.Text}
	for name, t := range item.Preferences {
		if !word.MatchString(name) {
			return prompt{}, failure.Errorf(failure.InputInvalid, "the name of a preference is not made of letters, digits and _.-")
		}
		texts = append(texts, t)
	}
	if err := r.guard.VerifyTexts(texts...); err != nil {
		return prompt{}, err
	}
	version, known := r.prompts[to.PromptVersion]
	if !known {
		return prompt{}, failure.Errorf(failure.ConfigInvalid, "there is no prompt version %q", to.PromptVersion)
	}
	p, err := version.render(item)
	p.model, p.maxAnswerTokens = to.Model, r.cfg.MaxAnswerTokens
	return p, err
}
