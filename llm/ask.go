package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// ask has q answered: by an answer that is kept, else by the models in their
// order. prepaid is the part of the review's budget that was set aside for it.
func (run *run) ask(ctx context.Context, q question, prepaid int) (json.RawMessage, error) {
	budget := &tokenBudget{run: run, prepaid: prepaid}
	defer budget.close()
	if k, ok := run.answered(ctx, q); ok {
		run.spend(review.Usage{Kept: 1}, k.Model, true)
		return k.Answer, nil
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
	return nil, mostHopeful(errs)
}

// anotherMayAnswer reports whether a failure lies with the model rather than
// with the request, the account or the way to the endpoint.
func anotherMayAnswer(err error) bool {
	return slices.Contains([]failure.Class{
		failure.ContentPolicy, failure.SchemaInvalid, failure.NotFound, failure.ConfigInvalid, failure.PermissionDenied,
		failure.RateLimited, failure.QuotaExhausted, failure.UpstreamInternal, failure.UpstreamUnavailable, failure.NetworkTimeout,
	}, failure.ClassOf(err))
}

// mostHopeful is the first error that another attempt may cure, else the first:
// that of the model that was to answer.
func mostHopeful(errs []error) error {
	for _, err := range errs {
		if failure.ClassOf(err).Retryable() {
			return err
		}
	}
	return errs[0]
}

// askModel asks q of one model, and once more with the reason if the answer
// cannot be used. How often that was so before is part of what is asked, so that
// no request is sent twice that has failed.
func (run *run) askModel(ctx context.Context, budget *tokenBudget, model string, q question) (json.RawMessage, error) {
	key := run.key(model, q)
	k := run.recall(ctx, key)
	for repair := false; ; repair = true {
		answer, says, err := run.call(ctx, budget, model, q, k.note())
		unusable, bad := errors.AsType[unusableError](err)
		switch {
		case err == nil:
			run.remember(ctx, key, kept{Answer: answer, Model: says})
			return answer, nil
		case failure.ClassOf(err) == failure.TooLarge:
			run.remember(ctx, key, kept{TooLong: true})
			return nil, err
		case !bad:
			return nil, err
		}
		k.Useless, k.Why = k.Useless+1, unusable.why
		run.remember(ctx, key, k)
		if repair || !budget.affords(run.cost(q)) {
			return nil, err
		}
		run.lg.InfoContext(ctx, "asked a model to repair its answer", "changelist", run.change.Number, "reason", unusable.why)
	}
}

// note tells a model why its earlier answers were of no use, in our words alone.
func (k kept) note() string {
	if k.Useless == 0 {
		return ""
	}
	return fmt.Sprintf("Answer %d to this could not be used: %s. Answer again, with the one JSON object that was asked for and nothing else.", k.Useless, k.Why)
}

// call sends q to a model, again in a simpler form as long as the endpoint
// complains about one. says is what the model calls itself.
func (run *run) call(ctx context.Context, budget *tokenBudget, model string, q question, note string) (answer json.RawMessage, says string, err error) {
	user, err := q.user()
	if err != nil {
		return nil, "", err
	}
	for {
		req := run.request(model, user, note, q)
		grant, err := budget.pay(ctx, run.cost(q))
		if err != nil {
			return nil, "", err
		}
		resp, err := run.send(ctx, req)
		if err != nil {
			run.spend(review.Usage{Calls: 1}, "", false)
			ours := run.classify(ctx, err, resp.Header())
			budget.failed(ctx, grant, wasAnswered(err), failure.ClassOf(ours))
			if run.adapt(ctx, model, err) {
				continue
			}
			return nil, "", ours
		}
		used := usageOf(req, resp)
		budget.settle(ctx, grant, used)
		says = run.nameOf(resp.Model)
		run.spend(used, says, model == run.cfg.Model)
		content, err := run.content(resp)
		if err != nil {
			return nil, says, err
		}
		answer, err := q.read(content)
		return answer, says, unusable(resp.Header(), err)
	}
}

func (r *Reviewer) send(ctx context.Context, req openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	call, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	return r.client.CreateChatCompletion(call, req)
}

// adapt learns from what the endpoint says it does not know, and reports whether
// there was something to learn.
func (r *Reviewer) adapt(ctx context.Context, model string, err error) bool {
	status, complaint := complaintOf(err)
	simpler, ok := r.dialects.of(model).simpler(status, complaint)
	if ok {
		r.dialects.learn(model, simpler)
		r.lg.InfoContext(ctx, "endpoint does not know a parameter, asked without it", "answer_format", string(simpler.format), "max_tokens", simpler.maxTokens)
	}
	return ok
}

// complaintOf is what an endpoint said about a request, in lower case: for us
// to look for words in, and for nobody to see.
func complaintOf(err error) (status int, text string) {
	if other, ok := errors.AsType[*openai.RequestError](err); ok {
		return other.HTTPStatusCode, strings.ToLower(string(other.Body))
	}
	if api, ok := errors.AsType[*openai.APIError](err); ok {
		if api.Param != nil {
			text = *api.Param + " "
		}
		return api.HTTPStatusCode, strings.ToLower(text + api.Message)
	}
	return 0, ""
}

// wasAnswered reports whether the endpoint answered a call that failed. If not,
// nobody knows what became of it.
func wasAnswered(err error) bool {
	status, _ := complaintOf(err)
	return status != 0
}

// usageOf is what a call used. Where the endpoint does not say, it is estimated.
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

// nameOf is what a model calls itself, redacted: the endpoint wrote it.
func (r *Reviewer) nameOf(model string) string {
	name, err := r.guard.String(model)
	if err != nil {
		return ""
	}
	return name.String()
}

// An unusableError is an answer that is not what was asked for; why says so in
// our words.
type unusableError struct{ why string }

func (e unusableError) Error() string { return "answer of the model cannot be used: " + e.why }

// unusable gives an error of reading an answer its class, unless it has one.
func unusable(h http.Header, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*failure.Error](err); ours {
		return err
	}
	return &failure.Error{Class: failure.SchemaInvalid, Err: unusableError{err.Error()}, RequestID: requestID(h)}
}
