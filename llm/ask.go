package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A question is one question to a model about a part of the change.
type question struct {
	list    string // of the answer that the task asks for
	about   string // description, jobs and list of files
	part    chunk
	context chunk // code around the part
	use     review.ContextUse
	pack    chunk  // more of it, to verify findings
	listed  string // the rendered findings to verify
	// read validates the list of an answer and returns what may be cached of it, which
	// has passed redaction. If it is nil, the list has findings.
	read func(items []json.RawMessage) (json.RawMessage, error)
}

// key returns the text of q without what is new in every review.
func (q question) key() string {
	text, _ := q.withCodes("")
	pack, _ := q.pack.withCodes("")
	return q.list + "\x00" + q.about + text + pack + q.listed
}

// withCodes renders context and part, with a check code between them, so that a long
// context does not widen the gaps between the codes of the part.
func (q question) withCodes(fence string) (text string, codes []string) {
	text, codes = q.context.withCodes(fence)
	if text != "" {
		code := codeAfter(fence, text)
		text += codePrefix + code + "\n"
		codes = append(codes, code)
	}
	part, more := q.part.withCodes(fence + text)
	return text + part, append(codes, more...)
}

// shown is what the task is about: the context and the part of the change.
func (q question) shown() chunk { return slices.Concat(q.context, q.part) }

// A sentPrompt is a prompt with the check codes that its answer has to repeat.
type sentPrompt struct {
	system, user string
	codes        []string
	tokens       int // estimated
}

// prompt renders q for a server. note, if not empty, is why earlier answers were
// unusable. The last code is new in every call, so that an answer to another call is
// noticed.
func (run *run) prompt(w modelDialect, q question, note string) (sentPrompt, error) {
	text, codes := q.withCodes(run.fence)
	pack, packCodes := q.pack.withCodes(run.fence)
	last := newNonce()[:2*codeBytes]
	user, err := run.prompts.message(userMessage{Fence: run.fence, Text: q.about + text, Pack: pack, Findings: q.listed, Note: note, Code: last})
	if err != nil {
		return sentPrompt{}, err
	}
	system := run.system[w.Format]
	if w.inPrompt && note == "" { // a note has the schema, so that the rest is that of the first call
		system = run.system[FormatText]
	}
	codes = slices.Concat([]string{run.prompts.first}, codes, packCodes, []string{last})
	return sentPrompt{system, user, codes, countTokens(system) + countTokens(user)}, nil
}

// ask returns the answer to q: the cached answer, or else the answer of the first model
// that can answer. setAside is the part of the review's budget reserved for q.
func (run *run) ask(ctx context.Context, q question, setAside int) (cachedAnswer, error) {
	budget := &tokenBudget{run: run, setAside: setAside}
	defer budget.release()
	if a, ok := run.cachedFromAny(ctx, q); ok {
		run.addUsage(review.Usage{Kept: 1}, a.Model, true)
		return a, nil
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
		return cachedAnswer{}, errs[i] // the next attempt may succeed
	}
	return cachedAnswer{}, errs[0]
}

// anotherMayAnswer reports whether an error is specific to the model, and not to
// the request, the account or the connection.
func anotherMayAnswer(err error) bool {
	return slices.Contains([]failure.Class{
		failure.ContentPolicy, failure.SchemaInvalid, failure.PromptTruncated, failure.NotFound, failure.ConfigInvalid, failure.PermissionDenied, failure.EndpointRefused,
		failure.RateLimited, failure.QuotaExhausted, failure.UpstreamInternal, failure.UpstreamUnavailable, failure.NetworkTimeout,
	}, failure.ClassOf(err))
}

// askModel asks q of one model, and once more if the answer is unusable, if thinking used up
// its limit, or if the endpoint says that it reads fewer tokens: with the reason, with the
// larger limit that the budget has room for, or with what the context leaves to the answer. The number of unusable answers is part of the request, so that a failed request
// is never repeated unchanged.
func (run *run) askModel(ctx context.Context, budget *tokenBudget, model string, q question) (cachedAnswer, error) {
	key := run.cacheKey(model, q)
	a := run.cached(ctx, key)
	limit := run.answerLimit(model, run.maxTokens(q, 0), run.cfg.MaxAnswerTokens)
	for again := false; ; again = true {
		answer, err := run.call(ctx, budget, model, q, a.note(), limit)
		if err == nil {
			run.cache(ctx, key, answer)
			return answer, nil
		}
		if _, thought := errors.AsType[thinkingLimitError](err); thought {
			larger := min(run.answerLimit(model, run.maxTokens(q, 0), thinkingFactor*limit), budget.room()-run.maxTokens(q, 0))
			if again || larger <= limit {
				return a, err
			}
			limit = larger
			continue
		}
		if failure.ClassOf(err) == failure.TooLarge && !again && run.learnContext(ctx, model, err) {
			prompt := run.maxTokens(q, 0)
			if shorter := run.answerLimit(model, prompt, limit); shorter < limit && prompt*3/2 < run.contextTokens(model) {
				limit = shorter
				continue
			}
		}
		if failure.ClassOf(err) == failure.TooLarge {
			run.cache(ctx, key, cachedAnswer{TooLong: true})
			return a, err
		}
		why, unusable := reasonOf(err)
		if !unusable {
			return a, err
		}
		a.Unusable, a.Why = a.Unusable+1, why
		run.cache(ctx, key, a)
		if again || budget.room() < run.maxTokens(q, limit) {
			return a, err
		}
		run.lg.InfoContext(ctx, "asked a model to repair its answer", "changelist", run.change.Number, "reason", why)
	}
}

// thinkingFactor multiplies the limit of an answer that thinking used up.
const thinkingFactor = 3

// reasonOf returns why an answer was unusable, in words for the model; ok is false for
// another error.
func reasonOf(err error) (why string, ok bool) {
	if unusable, ok := errors.AsType[unusableError](err); ok {
		return unusable.why, true
	}
	if _, ok := errors.AsType[truncatedError](err); ok {
		return "its check codes are not those of the prompt", true
	}
	return "", false
}

// call sends q to a model, and again in another dialect while the endpoint refuses a
// field.
func (run *run) call(ctx context.Context, budget *tokenBudget, model string, q question, note string, limit int) (cachedAnswer, error) {
	for {
		w, asks := run.modelDialect(model), note
		if note != "" && w.inPrompt {
			asks += " It has to be valid under this JSON schema:\n" + run.prompts.schema
		}
		p, err := run.prompt(w, q, asks)
		if err != nil {
			return cachedAnswer{}, err
		}
		grant, err := budget.reserve(ctx, run.maxTokens(q, limit))
		if err != nil {
			return cachedAnswer{}, err
		}
		done, err := run.endpoint.complete(ctx, run.cfg.API, run.request(w, model, p.system, p.user, limit), limit)
		if err != nil {
			run.addUsage(budget.settleFailed(ctx, grant, p.tokens, done, err), "", false)
			if run.learnFrom(ctx, model, err) {
				continue
			}
			return cachedAnswer{}, err
		}
		return run.accept(ctx, budget, grant, model, q, p, limit, done)
	}
}

// accept counts what an answer cost and returns it if it is proven and usable.
func (run *run) accept(ctx context.Context, budget *tokenBudget, grant review.Grant, model string, q question, p sentPrompt, limit int, done completion) (cachedAnswer, error) {
	used := done.count(p.system+p.user, p.tokens)
	answer, err := run.read(model, q, p, limit, done, used)
	if failure.ClassOf(err) == failure.PromptTruncated {
		used.Unproven = 1
	}
	budget.settle(ctx, grant, used)
	answer.Model = run.redactedName(done.model)
	run.addUsage(used, answer.Model, model == run.cfg.Model)
	if used.CompletionTokens > limit+limit/10 {
		run.learn(ctx, model, "more tokens than granted", func(w *modelDialect) bool { return w.limitBy(otherLimit(w.LimitField)) })
	}
	if failure.ClassOf(err) == failure.SchemaInvalid {
		run.learn(ctx, model, "format is not followed", func(w *modelDialect) bool {
			was := w.inPrompt || w.Format != FormatSchema
			w.inPrompt = true
			return !was
		})
	}
	return answer, err
}

// read returns the answer in a completion if it proves that the endpoint read all of p.
func (run *run) read(model string, q question, p sentPrompt, limit int, done completion, used review.Usage) (cachedAnswer, error) {
	meter, w := run.meter(model), run.modelDialect(model)
	if err := meter.check(used, p.tokens); err != nil {
		return cachedAnswer{}, err
	}
	o, cut, err := done.open(q.list, limit)
	if err != nil {
		return cachedAnswer{}, err
	}
	if err := checkCodes(o.codes, p.codes); err != nil {
		return cachedAnswer{}, err
	}
	if err := w.checkModel(model, done.model); err != nil {
		return cachedAnswer{}, err
	}
	meter.add(used, p.tokens)
	proof := review.Proof{Files: len(q.part), Codes: len(p.codes)}
	if !used.Estimated {
		proof.PromptTokens = used.PromptTokens
	}
	if q.read == nil {
		q.read = func(items []json.RawMessage) (json.RawMessage, error) { return run.readFindings(q, items) }
	}
	answer, err := q.read(o.items)
	return cachedAnswer{Answer: answer, Proof: proof, Cut: cut}, asUnusable(done.header, err)
}

// learnFrom learns from an error which field the endpoint does not support, and reports
// whether there was one.
func (r *Reviewer) learnFrom(ctx context.Context, model string, err error) bool {
	e, ok := errors.AsType[apiError](err)
	return ok && r.learn(ctx, model, "endpoint refuses a field", func(w *modelDialect) bool { return w.adjust(e) })
}

// learnContext learns from an error how many tokens the endpoint reads in one call to model,
// and reports whether it is a smaller number than what was known.
func (r *Reviewer) learnContext(ctx context.Context, model string, err error) bool {
	e, _ := errors.AsType[apiError](err)
	said, known := e.contextTokens(), r.contextTokens(model)
	return said > 0 && (known == 0 || said < known) && r.learn(ctx, model, "endpoint reads fewer tokens", func(w *modelDialect) bool {
		w.context = said
		return true
	})
}

// redactedName redacts the model's name in a response, which is untrusted.
func (r *Reviewer) redactedName(model string) string {
	name, err := r.guard.String(model)
	if err != nil {
		return ""
	}
	return name.String()
}

// An unusableError is an answer in another form than requested. why is the reason in our
// words.
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
