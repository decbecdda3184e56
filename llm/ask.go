package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A question is one question to a model.
type question struct {
	*prompts
	system map[AnswerFormat]string // instructions with rules
	text   string                  // the rendered part of the change
	listed string                  // the rendered findings to verify
	// read validates an answer and returns what may be cached of it, which has
	// passed redaction.
	read func(content string) (json.RawMessage, error)
}

// request returns the request that asks q of model. note, if not empty, says why
// earlier answers were unusable; it comes last, so that the rest is cacheable.
func (r *Reviewer) request(model, user, note string, q question) openai.ChatCompletionRequest {
	d := r.dialect(model)
	req := openai.ChatCompletionRequest{
		Model: model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: q.system[d.format]},
			{Role: openai.ChatMessageRoleUser, Content: user},
		},
		MaxCompletionTokens: r.cfg.MaxAnswerTokens,
		Temperature:         r.cfg.Temperature,
		ResponseFormat:      &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatType(d.format)},
	}
	if note != "" {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: note})
	}
	d.adjust(&req)
	switch {
	case d.format == FormatSchema:
		req.ResponseFormat.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{Name: q.list, Schema: json.RawMessage(q.schema), Strict: true}
	case d.format == FormatText && r.cfg.AnswerFormat != FormatText:
		req.ResponseFormat = nil // the endpoint refused the field
	}
	return req
}

// ask returns the answer to q: the cached one, or else that of the first model
// that can answer. setAside is the part of the review's budget reserved for q.
func (run *run) ask(ctx context.Context, q question, setAside int) (json.RawMessage, error) {
	budget := &tokenBudget{run: run, setAside: setAside}
	defer budget.release()
	if a, ok := run.cachedFromAny(ctx, q); ok {
		run.addUsage(review.Usage{Kept: 1}, a.Model, true)
		return a.Answer, nil
	}
	var errs []error
	for i, model := range run.cfg.models() {
		answer, err := run.askModel(ctx, budget, model, q)
		if err == nil {
			if i > 0 {
				run.switched(ctx, model, errs[0])
			}
			return answer, nil
		}
		if errs = append(errs, err); !anotherMayAnswer(err) {
			break
		}
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return failure.ClassOf(err).Retryable() }); i >= 0 {
		return nil, errs[i] // the next attempt may succeed
	}
	return nil, errs[0]
}

// anotherMayAnswer reports whether an error is specific to the model, and not to
// the request, the account or the connection.
func anotherMayAnswer(err error) bool {
	return slices.Contains([]failure.Class{
		failure.ContentPolicy, failure.SchemaInvalid, failure.NotFound, failure.ConfigInvalid, failure.PermissionDenied,
		failure.RateLimited, failure.QuotaExhausted, failure.UpstreamInternal, failure.UpstreamUnavailable, failure.NetworkTimeout,
	}, failure.ClassOf(err))
}

// askModel asks q of one model, and once more with the reason if the answer is
// unusable. The number of unusable answers is part of the request, so that a
// failed request is never repeated unchanged.
func (run *run) askModel(ctx context.Context, budget *tokenBudget, model string, q question) (json.RawMessage, error) {
	key := run.cacheKey(model, q)
	a := run.cached(ctx, key)
	for repair := false; ; repair = true {
		answer, name, err := run.call(ctx, budget, model, q, a.note())
		unusable, bad := errors.AsType[unusableError](err)
		switch {
		case err == nil:
			run.cache(ctx, key, cachedAnswer{Answer: answer, Model: name})
			return answer, nil
		case failure.ClassOf(err) == failure.TooLarge:
			run.cache(ctx, key, cachedAnswer{TooLong: true})
			return nil, err
		case !bad:
			return nil, err
		}
		a.Unusable, a.Why = a.Unusable+1, unusable.why
		run.cache(ctx, key, a)
		if repair || !budget.allows(run.maxTokens(q)) {
			return nil, err
		}
		run.lg.InfoContext(ctx, "asked a model to repair its answer", "changelist", run.change.Number, "reason", unusable.why)
	}
}

// call sends q to a model, and again in a simpler dialect while the endpoint
// refuses a parameter. name is the model's name in the response.
func (run *run) call(ctx context.Context, budget *tokenBudget, model string, q question, note string) (answer json.RawMessage, name string, err error) {
	user, err := q.message(q.text, q.listed)
	if err != nil {
		return nil, "", err
	}
	for {
		req := run.request(model, user, note, q)
		grant, err := budget.reserve(ctx, run.maxTokens(q))
		if err != nil {
			return nil, "", err
		}
		resp, err := run.send(ctx, req)
		if err != nil {
			run.addUsage(review.Usage{Calls: 1}, "", false)
			classified := run.endpoint.Classify(ctx, err, resp.Header())
			_, answered := errorAnswer(err)
			budget.settleFailed(ctx, grant, answered, failure.ClassOf(classified))
			if run.learnFrom(ctx, model, err) {
				continue
			}
			return nil, "", classified
		}
		used := usageOf(req, resp)
		budget.settle(ctx, grant, used)
		name = run.redactedName(resp.Model)
		run.addUsage(used, name, model == run.cfg.Model)
		content, err := run.content(resp)
		if err != nil {
			return nil, name, err
		}
		answer, err := q.read(content)
		return answer, name, asUnusable(resp.Header(), err)
	}
}

func (r *Reviewer) send(ctx context.Context, req openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	call, cancel := r.endpoint.Bound(ctx)
	defer cancel()
	return r.client.CreateChatCompletion(call, req)
}

// usageOf returns what a call used, estimated if the endpoint does not report it.
func usageOf(req openai.ChatCompletionRequest, resp openai.ChatCompletionResponse) review.Usage {
	u := review.Usage{Calls: 1, PromptTokens: resp.Usage.PromptTokens, CompletionTokens: resp.Usage.CompletionTokens}
	if d := resp.Usage.PromptTokensDetails; d != nil {
		u.CachedTokens = d.CachedTokens
	}
	if u.Tokens() > 0 {
		return u
	}
	u.Estimated = true
	for _, m := range req.Messages {
		u.PromptTokens += countTokens(m.Content)
	}
	for _, c := range resp.Choices {
		u.CompletionTokens += countTokens(c.Message.Content)
	}
	return u
}

// redactedName redacts the model's name in a response, which is untrusted.
func (r *Reviewer) redactedName(model string) string {
	name, err := r.guard.String(model)
	if err != nil {
		return ""
	}
	return name.String()
}

// An unusableError is an answer in another form than requested; why says so in
// our words.
type unusableError struct{ why string }

func (e unusableError) Error() string { return "answer of the model is unusable: " + e.why }

// asUnusable gives an error of reading an answer its class, unless it has one.
func asUnusable(h http.Header, err error) error {
	if err == nil {
		return nil
	}
	if _, classified := errors.AsType[*failure.Error](err); classified {
		return err
	}
	return answerError(failure.SchemaInvalid, h, unusableError{err.Error()})
}
