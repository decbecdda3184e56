// Package llm has a model review a change through one OpenAI-compatible
// endpoint. It accepts only [redaction.Text] and has a guard check every request
// body before it is sent. Answers are untrusted: they are validated against a
// schema, the lines of a finding are computed from the code that it quotes, and
// findings on files that were not shown are dropped.
//
// A change is divided into as many calls as its size needs. Every file that the
// model did not read in full is reported as an omission with its reason. Failed
// calls are not retried here: errors carry a class, and the caller decides. Only
// an unusable answer is requested once more, with the reason. The prompts and
// schemas are the files in prompts.
//
// [Reviewer.Review] is the entry point: plan.go divides the change into calls
// (diff.go, priority.go, chunk.go), run.go makes them (ask.go, cache.go,
// budget.go), answer.go and findings.go read the answers (json_object.go,
// anchor.go), filter.go and verify.go (the verification pass) remove findings,
// and draft.go returns the result.
package llm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Reviewer reviews changes with one model. It is safe for concurrent use.
type Reviewer struct {
	lg         *slog.Logger
	guard      redactor
	cfg        Config
	endpoint   *Endpoint
	client     *openai.Client
	dialects   sync.Map // dialect by model, as learned
	findings   *prompts // of a review
	verdicts   *prompts // of the verification pass
	guidelines *guidelines
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
	cfg = cfg.withDefaults()
	endpoint, err := NewEndpoint(lg, guard, EndpointConfig{BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, APIKeyOld: cfg.APIKeyOld, Timeout: cfg.Timeout})
	if err != nil {
		return nil, err
	}
	r := &Reviewer{lg: lg, guard: guard, cfg: cfg, endpoint: endpoint, client: endpoint.OpenAI()}
	if err := cfg.validate(); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if r.guidelines, err = newGuidelines(guard.String, cfg.Rules); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if r.findings, err = loadPrompts("findings", systemTemplate, changeTemplate, findingsSchema, cfg.Language); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if r.verdicts, err = loadPrompts("verdicts", verifySystemTemplate, verifyTemplate, verdictsSchema, cfg.Language); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	return r, nil
}

// Review has the model review c.
//
// An error carries a class and means that nothing is known about the change. The
// answers of successful calls are then in the cache for the next attempt. An error
// of ctx is returned unchanged.
func (r *Reviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	if err := r.guard.Verify(c); err != nil {
		return review.Draft{}, fmt.Errorf("review changelist %d: %w", c.Number, err)
	}
	run, err := r.newRun(ctx, c, o)
	if err != nil {
		return review.Draft{}, err
	}
	if err := run.reviewAll(ctx); err != nil {
		return review.Draft{}, err
	}
	draft, err := run.draft(ctx)
	if err != nil {
		return review.Draft{}, err
	}
	dropped := 0
	for _, n := range draft.Dropped {
		dropped += n
	}
	r.lg.InfoContext(ctx, "reviewed change", "changelist", c.Number, "calls", draft.Usage.Calls, "cached_answers", draft.Usage.Kept,
		"findings", len(draft.Findings), "dropped", dropped, "files_reviewed", draft.FilesRead, "files_omitted", len(draft.Omissions))
	return draft, nil
}

// pingTokens bounds the answer to a ping.
const pingTokens = 16

// Ping makes a minimal call, without content of a change, to the endpoint and
// model of a review. Its errors carry the class that a review would report.
func (r *Reviewer) Ping(ctx context.Context) error {
	for {
		req := openai.ChatCompletionRequest{
			Model:               r.cfg.Model,
			Messages:            []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "Answer: ready."}},
			MaxCompletionTokens: pingTokens,
		}
		r.dialect(r.cfg.Model).adjust(&req)
		resp, err := r.send(ctx, req)
		if err == nil {
			return nil
		}
		if !r.learnFrom(ctx, r.cfg.Model, err) {
			return r.endpoint.Classify(ctx, err, resp.Header())
		}
	}
}
