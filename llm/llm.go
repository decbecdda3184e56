// Package llm has a model review a change through one endpoint (llm/endpoint). It
// accepts only [redaction.Text]. Answers are untrusted: they are validated against a
// schema, the lines of a finding are computed from the code that it quotes, and
// findings on files that were not shown are dropped, unless what they quote was shown once.
//
// A change is divided into as many calls as its size needs. Every file that the
// model did not read in full is reported as an omission with its reason. Failed
// calls are not retried here: errors carry a class, and the caller decides. Only an answer that
// is unusable or unproven is requested once more, with the reason, and one whose limit thinking
// used up, with a larger limit. An answer has to prove that the endpoint read the whole prompt
// (proof.go). The prompts and the schema are the files in prompts.
//
// [Reviewer.Review] is the entry point: plan.go divides the change (file.go) into calls
// (chunk.go, tokens.go) and the code around it that they show (context.go), run.go makes them
// (prompt.go, ask.go, cache.go), answer.go reads the answers, findings.go places their findings,
// filter.go decides which of them are reported, also by verify.go (the verification pass), and
// draft.go returns the result.
package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Reviewer reviews changes with one model. It is safe for concurrent use.
type Reviewer struct {
	lg         *slog.Logger
	guard      redactor
	cfg        Config
	fields     map[string]any // of every request, beside the fields of [endpoint.Request]
	endpoint   *endpoint.Endpoint
	prompts    *prompts
	guidelines *guidelines
}

// redactor decides what may be sent, and redacts the text of a model. Its errors quote no
// content.
type redactor interface {
	endpoint.Guard
	// Verify returns an error for a change that the current pipeline did not make.
	Verify(c redaction.Change) error
	// Compose seals a prompt, or returns an error if it holds a secret.
	Compose(s string) (redaction.Text, error)
	Findings(fs []review.Finding) ([]review.Finding, error)
	String(s string) (redaction.Text, error)
}

// New returns a reviewer whose changes and request bodies are checked by guard.
// It makes no call. Its errors have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard redactor, cfg Config) (*Reviewer, error) {
	if err := config.Validate("llm", &cfg); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	fields, err := cfg.requestFields()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	e, err := endpoint.New(lg, guard, cfg.Config)
	if err != nil {
		return nil, err
	}
	r := &Reviewer{lg: lg, guard: guard, cfg: cfg, fields: fields, endpoint: e, prompts: loadPrompts(cfg)}
	if r.guidelines, err = newGuidelines(guard.String, cfg.Rules); err != nil {
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
	r.endpoint.Probe(ctx)
	run, err := r.newRun(ctx, c, o)
	if err != nil {
		return review.Draft{}, err
	}
	var draft review.Draft
	if err = run.reviewAll(ctx); err == nil {
		draft, err = run.draft(ctx)
	}
	if err != nil {
		return review.Draft{Record: review.Record{Usage: run.usage}}, err
	}
	r.lg.InfoContext(ctx, "reviewed change", "changelist", c.Number, "calls", draft.Usage.Calls, "unproven_answers", draft.Usage.Unproven, "cached_answers", draft.Usage.Kept,
		"findings", len(draft.Findings), "dropped", draft.Dropped, "files", len(draft.Coverage), "files_reviewed", draft.Coverage.Tally().Read)
	return draft, nil
}

// Ping makes a minimal call, without content of a change, to the endpoint and
// model of a review. Its errors carry the class that a review would report.
func (r *Reviewer) Ping(ctx context.Context) error {
	r.endpoint.Probe(ctx)
	text, err := r.guard.Compose("Answer: ready.")
	if err != nil {
		return err
	}
	_, err = r.endpoint.Ask(ctx, endpoint.Request{Model: r.cfg.Model, User: text, MaxTokens: 16, Format: endpoint.FormatText, Fields: r.fields})
	return err
}

// contextTokens returns how many tokens the server reads in one call to model, prompt and
// answer. It is 0 if that is not known.
func (r *Reviewer) contextTokens(model string) int {
	known := r.endpoint.Context(model)
	if configured := r.cfg.ContextTokens; configured > 0 && (known == 0 || configured < known) {
		return configured
	}
	return known
}

// promptLimit returns the largest prompt: the configured one, or what the context of
// the server leaves beside the answer, less a tenth, because its vocabulary is another one.
func (r *Reviewer) promptLimit() int {
	tokens := r.contextTokens(r.cfg.Model)
	if tokens == 0 {
		return r.cfg.MaxPromptTokens
	}
	return min(r.cfg.MaxPromptTokens, max((tokens-min(r.cfg.MaxAnswerTokens, tokens/4))*9/10, minPromptTokens))
}

// answerLimit returns the largest answer of model beside a prompt of that many tokens: at
// most most, and what the prompt leaves of the context of the server, whose vocabulary may
// count half as many tokens more.
func (r *Reviewer) answerLimit(model string, prompt, most int) int {
	tokens := r.contextTokens(model)
	if tokens == 0 {
		return most
	}
	return min(most, max(tokens-prompt*3/2, tokens/4))
}

// Describe probes the endpoint and returns the dialect that requests are made in.
func (r *Reviewer) Describe(ctx context.Context) string {
	shown := r.endpoint.Describe(ctx, r.cfg.Model)
	return fmt.Sprintf("%s, prompts of %d tokens", shown, r.promptLimit())
}

// CheckUp sends a prompt of the configured size to model, without any part of a change, and
// returns how the endpoint handled it. If the endpoint did not read it because of its length, fix is the
// setting to change, otherwise "". Any other failure is an error.
func (r *Reviewer) CheckUp(ctx context.Context, model string) (detail, fix string, err error) {
	r.endpoint.Probe(ctx)
	limit := r.promptLimit()
	f := newFile("//check/up.txt", "add, text")
	var diff strings.Builder
	for i := range (limit - minPromptTokens/2) / 16 {
		fmt.Fprintf(&diff, "+line %d of a text that is there to be long\n", i)
	}
	if err := f.parse("@@ -0,0 +1 @@\n" + diff.String()); err != nil {
		return "", "", err
	}
	q := question{list: listFindings, part: chunk{{f, f.hunks}}}
	run := &run{Reviewer: r, system: r.prompts.system, fence: newNonce(), left: r.cfg.MaxTokensPerReview}
	size := countTokens(run.system + q.key())
	answer, err := run.call(ctx, model, q, "", r.answerLimit(model, size, r.cfg.MaxAnswerTokens))
	fix = fmt.Sprintf("at the model's server, raise %s to %d tokens, or set llm.context_tokens to what it has", r.endpoint.ContextSetting(), limit+r.cfg.MaxAnswerTokens)
	_, refused := errors.AsType[endpoint.Error](err)
	switch class := failure.ClassOf(err); {
	case err == nil:
		reported := "no prompt tokens"
		if answer.Proof.PromptTokens > 0 {
			reported = fmt.Sprintf("%d prompt tokens", answer.Proof.PromptTokens)
		}
		return fmt.Sprintf("a prompt of about %d tokens was read: all %d check codes, %s reported", size, answer.Proof.Codes, reported), "", nil
	case class == failure.TooLarge && refused:
		return "prompt refused: " + err.Error(), fix, nil
	case class == failure.PromptTruncated:
		return "prompt ignored: " + err.Error(), fix, nil
	}
	return "", "", fmt.Errorf("try a prompt at the endpoint: %w", err)
}
