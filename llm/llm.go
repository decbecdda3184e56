// Package llm has a model review a change through one OpenAI-compatible
// endpoint. It accepts only [redaction.Text] and has a guard check every request
// body before it is sent. Answers are untrusted: they are validated against a
// schema, the lines of a finding are computed from the code that it quotes, and
// findings on files that were not shown are dropped.
//
// A change is divided into as many calls as its size needs. Every file that the
// model did not read in full is reported as an omission with its reason. Failed
// calls are not retried here: errors carry a class, and the caller decides. Only
// an unusable answer is requested once more, with the reason. An answer has to prove
// that the endpoint read the whole prompt (proof.go). The prompts and the schema are
// the files in prompts.
//
// [Reviewer.Review] is the entry point: plan.go divides the change into calls
// (diff.go, priority.go, chunk.go), run.go makes them (ask.go, request.go,
// complete.go, cache.go, budget.go) as the family of servers needs (dialect.go),
// answer.go and findings.go read the answers (json_object.go, anchor.go), filter.go and
// verify.go (the verification pass) remove findings, and draft.go returns the result.
package llm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Reviewer reviews changes with one model. It is safe for concurrent use.
type Reviewer struct {
	lg            *slog.Logger
	guard         redactor
	cfg           Config
	extra         map[string]any // of Config.Extra
	endpoint      *Endpoint
	prompts       *prompts
	guidelines    *guidelines
	modelDialects sync.Map // modelDialect by model, as learned
	meters        sync.Map // *meter by model

	probing sync.Mutex // guards the fields below
	probed  bool
	dialect Dialect
	context int // tokens that the server reads, 0 if it does not report them
}

// redactor is a guard that also redacts the text of a model.
type redactor interface {
	guard
	Findings(fs []review.Finding) ([]review.Finding, error)
	String(s string) (redaction.Text, error)
}

// New returns a reviewer whose changes and request bodies are checked by guard.
// It makes no call. Its errors have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard redactor, cfg Config) (*Reviewer, error) {
	if err := config.Validate("llm", &cfg); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	extra, err := cfg.extraFields()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	dialect := dialectOf(cfg.Dialect, cfg.BaseURL)
	cfg.KeyHeader = dialect.KeyHeader
	endpoint, err := NewEndpoint(lg, guard, cfg.EndpointConfig)
	if err != nil {
		return nil, err
	}
	r := &Reviewer{lg: lg, guard: guard, cfg: cfg, extra: extra, endpoint: endpoint, dialect: dialect}
	if r.guidelines, err = newGuidelines(guard.String, cfg.Rules); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if r.prompts, err = loadPrompts(cfg); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	return r, nil
}

// Review has the model review c.
//
// An error carries a class and means that nothing is known about the change; the draft
// then has only the usage. The answers of successful calls are in the cache for the
// next attempt. An error of ctx is returned unchanged.
func (r *Reviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	if err := r.guard.Verify(c); err != nil {
		return review.Draft{}, fmt.Errorf("review changelist %d: %w", c.Number, err)
	}
	r.probe(ctx)
	run, err := r.newRun(ctx, c, o)
	if err != nil {
		return review.Draft{}, err
	}
	if err := run.reviewAll(ctx); err != nil {
		return review.Draft{Record: review.Record{Usage: run.usage}}, err
	}
	draft, err := run.draft(ctx)
	if err != nil {
		return review.Draft{Record: review.Record{Usage: run.usage}}, err
	}
	dropped := 0
	for _, n := range draft.Dropped {
		dropped += n
	}
	r.lg.InfoContext(ctx, "reviewed change", "changelist", c.Number, "calls", draft.Usage.Calls, "unproven_answers", draft.Usage.Unproven, "cached_answers", draft.Usage.Kept,
		"findings", len(draft.Findings), "dropped", dropped, "files", len(draft.Coverage), "files_reviewed", draft.Coverage.Tally().Read)
	return draft, nil
}

// pingTokens bounds the answer to a ping.
const pingTokens = 16

// Ping makes a minimal call, without content of a change, to the endpoint and
// model of a review. Its errors carry the class that a review would report.
func (r *Reviewer) Ping(ctx context.Context) error {
	r.probe(ctx)
	_, err := r.sendPrompt(ctx, r.cfg.Model, "Answer: ready.", pingTokens)
	return err
}

// sendPrompt asks model in its dialect. If the endpoint refuses a field, it asks again without
// the field.
func (r *Reviewer) sendPrompt(ctx context.Context, model, user string, limit int) (completion, error) {
	for {
		w := r.modelDialect(model)
		w.Format = FormatText
		done, err := r.endpoint.complete(ctx, r.cfg.API, r.request(w, model, "", user, limit), limit)
		if err == nil || !r.learnFrom(ctx, model, err) {
			return done, err
		}
	}
}
