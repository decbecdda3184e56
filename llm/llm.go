// Package llm has one OpenAI-compatible endpoint review a change. It takes
// nothing but [redaction.Text], shows every request body to a guard before it
// is sent, and trusts nothing that comes back: an answer is checked against a
// schema, the place of a finding is computed from the code it quotes, and a
// path that was not shown is dropped.
//
// A change is laid out over as many calls as its size needs. What is not
// shown, for whatever reason, is named as omitted. Nothing is tried twice
// here: errors carry their class, and who called decides. The prompts and the
// schema are the files in prompts.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/santhosh-tekuri/jsonschema/v6"
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Reviewer reviews changes with one model. It is safe for concurrent use.
type Reviewer struct {
	lg      *slog.Logger
	guard   guard
	cfg     Config
	client  *openai.Client
	prompts *prompts
	schema  *jsonschema.Schema
	memo    *memo
}

// New returns a reviewer whose every change and request body passes guard. It makes no
// call. Its errors have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard guard, cfg Config) (*Reviewer, error) {
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "model client has no guard: hand it the redaction pipeline")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	prompts, err := loadPrompts(cfg.AnswerFormat)
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	schema, err := compileSchema()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	client := openai.DefaultConfig("") // the keyring signs
	client.BaseURL = cfg.BaseURL
	client.HTTPClient = newWire(guard, &keyring{lg: lg, key: cfg.APIKey, old: cfg.APIKeyOld})
	return &Reviewer{
		lg:      lg,
		guard:   guard,
		cfg:     cfg,
		client:  openai.NewClientWithConfig(client),
		prompts: prompts,
		schema:  schema,
		memo:    newMemo(),
	}, nil
}

// Review has the model review c. progress, if not nil, is told after every
// call how many of the calls are done; the total grows when the endpoint finds
// a prompt too long. It is never called twice at a time.
//
// An error means that nothing is known about the change, and carries a class.
// The answers to the calls that did succeed are kept for the next attempt in
// this process. An error of ctx is returned as it is.
func (r *Reviewer) Review(ctx context.Context, c redaction.Change, progress func(done, total int)) (review.Draft, error) {
	if err := r.guard.Vouch(c); err != nil {
		return review.Draft{}, fmt.Errorf("review changelist %d: %w", c.Number, err)
	}
	run, err := r.begin(c, progress)
	if err != nil {
		return review.Draft{}, err
	}
	if err := run.reviewAll(ctx); err != nil {
		return review.Draft{}, err
	}
	r.memo.drop(run.asked)
	draft := run.draft()
	if run.dropped > 0 {
		r.lg.WarnContext(ctx, "dropped findings on paths the model was not shown", "changelist", c.Number, "findings", run.dropped)
	}
	r.lg.InfoContext(ctx, "reviewed change", "changelist", c.Number, "calls", draft.Usage.Calls, "findings", len(draft.Findings),
		"files_reviewed", draft.FilesRead, "files_omitted", len(draft.Omissions))
	return draft, nil
}

// ask makes one call that shows text, or takes its answer from an earlier
// attempt. A call that failed counts too.
func (r *Reviewer) ask(ctx context.Context, text string) (answer, error) {
	key := keyOf(text)
	if a, ok := r.memo.get(key); ok {
		return a, nil
	}
	user, err := r.prompts.user(text)
	if err != nil {
		return answer{}, err
	}
	call, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	resp, err := r.client.CreateChatCompletion(call, r.request(user))
	if err != nil {
		return answer{usage: review.Usage{Calls: 1}}, r.classify(ctx, err, resp.Header())
	}
	a, err := r.read(resp)
	if err == nil {
		r.memo.put(key, a)
	}
	return a, err
}

func (r *Reviewer) request(user string) openai.ChatCompletionRequest {
	format := &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatType(r.cfg.AnswerFormat)}
	if r.cfg.AnswerFormat == FormatSchema {
		format.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{Name: "findings", Schema: json.RawMessage(findingsSchema), Strict: true}
	}
	return openai.ChatCompletionRequest{
		Model: r.cfg.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: r.prompts.system},
			{Role: openai.ChatMessageRoleUser, Content: user},
		},
		MaxCompletionTokens: r.cfg.MaxAnswerTokens,
		Temperature:         r.cfg.Temperature,
		ResponseFormat:      format,
	}
}
