// Package llm has one OpenAI-compatible endpoint review a change. It takes
// nothing but [redaction.Text], shows every request body to a guard before it
// is sent, and trusts nothing that comes back: an answer is checked against a
// schema, the place of a finding is computed from the code it quotes, and a
// path that was not shown is dropped.
//
// A change is laid out over as many calls as its size needs. What is not
// shown, for whatever reason, is named as omitted. What fails for reasons
// outside of the request is not tried twice here: errors carry their class, and
// who called decides. An answer that cannot be used is asked for once more, with
// the reason. The prompts and the schemas are the files in prompts.
//
// [Reviewer.Review] is the way through: plan.go lays the change out (diff, order,
// chunk), run.go makes the calls (ask, request, wire, budget for tokens),
// answer.go and findings.go read what comes back (object, anchor), and draft.go sums
// up, after the second look of falsify.go.
package llm

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/santhosh-tekuri/jsonschema/v6"
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Reviewer reviews changes with one model. It is safe for concurrent use.
type Reviewer struct {
	lg       *slog.Logger
	guard    redactor
	cfg      Config
	client   *openai.Client
	dialects *dialects
	prompts  map[AnswerFormat]*prompts
	falsify  *falsifyPrompts
	schemas  schemas

	guidelines *guidelines
}

// schemas are what answers have to follow.
type schemas struct{ findings, verdicts *jsonschema.Schema }

// redactor is the guard of the wire that also redacts what a model wrote.
type redactor interface {
	guard
	Findings(fs []review.Finding) ([]review.Finding, error)
	String(s string) (redaction.Text, error)
}

// New returns a reviewer whose every change and request body passes guard. It makes
// no call. Its errors have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard redactor, cfg Config) (*Reviewer, error) {
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "model client has no guard: hand it the redaction pipeline")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	r := &Reviewer{lg: lg, guard: guard, cfg: cfg, dialects: newDialects(cfg.AnswerFormat)}
	if err := r.load(); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	client := openai.DefaultConfig("") // the keyring signs
	client.BaseURL = cfg.BaseURL
	client.HTTPClient = newWire(guard, &keyring{lg: lg, key: cfg.APIKey, old: cfg.APIKeyOld})
	r.client = openai.NewClientWithConfig(client)
	return r, nil
}

// load reads prompts and schemas.
func (r *Reviewer) load() (err error) {
	r.prompts = map[AnswerFormat]*prompts{}
	for _, format := range []AnswerFormat{FormatSchema, FormatObject, FormatText} {
		if r.prompts[format], err = loadPrompts(format, r.cfg.Language); err != nil {
			return err
		}
	}
	if r.guidelines, err = newGuidelines(r.guard.String, r.cfg.Rules); err != nil {
		return err
	}
	if r.falsify, err = loadFalsify(); err != nil {
		return err
	}
	if r.schemas.findings, err = compileSchema("findings.schema.json", findingsSchema); err != nil {
		return err
	}
	r.schemas.verdicts, err = compileSchema("verdicts.schema.json", verdictsSchema)
	return err
}

// Review has the model review c.
//
// An error carries a class and means that nothing is known about the change. The
// answers of successful calls are then in the cache for the next attempt. An error of
// ctx is returned unchanged.
func (r *Reviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	if err := r.guard.Verify(c); err != nil {
		return review.Draft{}, fmt.Errorf("review changelist %d: %w", c.Number, err)
	}
	run, err := r.begin(ctx, c, o)
	if err != nil {
		return review.Draft{}, err
	}
	if err := run.reviewAll(ctx); err != nil {
		return review.Draft{}, err
	}
	draft, err := run.conclude(ctx)
	if err != nil {
		return review.Draft{}, err
	}
	r.lg.InfoContext(ctx, "reviewed change", "changelist", c.Number, "calls", draft.Usage.Calls, "kept_answers", draft.Usage.Kept,
		"findings", len(draft.Findings), "dropped", dropped(draft), "files_reviewed", draft.FilesRead, "files_omitted", len(draft.Omissions))
	return draft, nil
}

// dropped is how many remarks became no finding.
func dropped(d review.Draft) (n int) {
	for _, some := range d.Dropped {
		n += some
	}
	return n
}
