package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A question is one question to a model about a part of the change.
type question struct {
	list    string // of the answer that the task asks for
	about   string // description, jobs and list of files
	part    chunk
	context chunk // code around the part
	use     review.ContextUse
	pack    chunk        // more of it, to verify findings
	flagged []*candidate // the findings to verify
	listed  string       // the same, rendered
	splits  int          // how often a larger part was split to this one
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
	system, user redaction.Text
	codes        []string
	tokens       int // estimated
}

// prompt renders q. note, if not empty, is why earlier answers were unusable. The last code is
// new in every call, so that an answer to another call is noticed.
func (run *run) prompt(q question, note string) (p sentPrompt, err error) {
	text, codes := q.withCodes(run.fence)
	pack, packCodes := q.pack.withCodes(run.fence)
	last := newNonce()[:2*codeBytes]
	user := render(messages, userMessage{Fence: run.fence, Text: q.about + text, Pack: pack, Findings: q.listed, Note: note, Code: last})
	p.codes = slices.Concat([]string{run.prompts.first}, codes, packCodes, []string{last})
	p.tokens = countTokens(run.system) + countTokens(user)
	if p.system, err = run.guard.Compose(run.system); err != nil {
		return p, err
	}
	p.user, err = run.guard.Compose(user)
	return p, err
}

// ask returns the answer to q: the cached answer, or else the answer of the first model
// that can answer.
func (run *run) ask(ctx context.Context, q question) (cachedAnswer, error) {
	if a, ok := run.cached(ctx, q); ok {
		run.addUsage(review.Usage{Kept: 1}, a.Model, a.Switch == review.Switch{})
		run.switched(ctx, a.Switch)
		return a, nil
	}
	var errs []error
	for i, model := range run.cfg.Models() {
		answer, err := run.askModel(ctx, model, q)
		if err == nil {
			if i > 0 {
				answer.Switch = review.Switch{From: run.cfg.Model, To: model, Why: string(failure.ClassOf(errs[0])), Calls: 1}
			}
			run.switched(ctx, answer.Switch)
			run.cache(ctx, run.cacheKey(model, q), answer)
			return answer, nil
		}
		if errs = append(errs, err); !slices.Contains(ofModel, failure.ClassOf(err)) {
			break
		}
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return failure.ClassOf(err).Retryable() }); i >= 0 {
		return cachedAnswer{}, errs[i] // the next attempt may succeed
	}
	return cachedAnswer{}, errs[0]
}

// ofModel are the classes of errors that are specific to the model, and not to
// the request, the account or the connection.
var ofModel = []failure.Class{
	failure.ContentPolicy, failure.SchemaInvalid, failure.PromptTruncated, failure.NotFound, failure.ConfigInvalid, failure.PermissionDenied, failure.EndpointRefused,
	failure.RateLimited, failure.QuotaExhausted, failure.UpstreamInternal, failure.UpstreamUnavailable, failure.NetworkTimeout,
}

// thinkingFactor multiplies the limit of an answer that thinking used up.
const thinkingFactor = 3

// askModel asks q of one model, and once more if the answer is unusable, with the reason, or if
// thinking used up its limit, with the larger limit that the budget has room for.
func (run *run) askModel(ctx context.Context, model string, q question) (cachedAnswer, error) {
	prompt := run.maxTokens(q, 0)
	limit := run.answerLimit(model, prompt, run.cfg.MaxAnswerTokens)
	note := ""
	for again := false; ; again = true {
		answer, err := run.call(ctx, model, q, note, limit)
		thought, thinking := errors.AsType[thinkingLimitError](err)
		why, unusable := reasonOf(err)
		run.mu.Lock()
		left := run.left
		run.mu.Unlock()
		switch larger := min(run.answerLimit(model, prompt, thinkingFactor*limit), left-prompt); {
		case err == nil, again, !thinking && !unusable:
			return answer, err
		case thinking:
			if larger <= limit || thought.limit < limit {
				return answer, err
			}
			limit = larger
		case left < prompt+limit:
			return answer, err
		default:
			note = "Your answer to this could not be used: " + why + ". Answer again, with the one JSON object that was asked for and nothing else."
			run.lg.InfoContext(ctx, "asked a model to repair its answer", "changelist", run.change.Number, "reason", why)
		}
	}
}

// reasonOf returns why an answer was unusable, in words for the model; ok is false for
// another error.
func reasonOf(err error) (why string, ok bool) {
	if unusable, ok := errors.AsType[unusableError](err); ok {
		return unusable.why, true
	}
	if truncated, ok := errors.AsType[truncatedError](err); ok {
		return truncated.why, true
	}
	_, refused := errors.AsType[endpoint.Error](err)
	return "it was not valid JSON", refused && failure.ClassOf(err) == failure.SchemaInvalid
}

// call sends q to a model, counts what that cost, and returns the answer if it is proven and
// usable.
func (run *run) call(ctx context.Context, model string, q question, note string, limit int) (cachedAnswer, error) {
	p, err := run.prompt(q, note)
	if err != nil {
		return cachedAnswer{}, err
	}
	grant, err := run.reserve(ctx, run.maxTokens(q, limit))
	if err != nil {
		return cachedAnswer{}, err
	}
	answer, err := run.endpoint.Ask(ctx, endpoint.Request{
		Model: model, System: p.system, User: p.user, Tokens: p.tokens, MaxTokens: limit, Format: endpoint.FormatSchema, Name: "review",
		Schema: json.RawMessage(run.prompts.schema), Fields: run.fields,
	})
	if err != nil {
		run.addUsage(run.settleFailed(ctx, grant, p.tokens, answer, err), "", false)
		return cachedAnswer{}, err
	}
	used := usageOf(answer, p)
	usable, err := run.read(ctx, model, q, p, answer, used)
	if failure.ClassOf(err) == failure.PromptTruncated {
		used.Unproven = 1
	}
	if unusable, ok := errors.AsType[unusableError](err); ok {
		unusable.stored = run.store(ctx, answer)
		err = answer.Fail(failure.SchemaInvalid, unusable)
	}
	run.settle(ctx, grant, used)
	if name, failed := run.guard.String(answer.Model); failed == nil { // untrusted
		usable.Model = name.String()
	}
	run.addUsage(used, usable.Model, model == run.cfg.Model)
	return usable, err
}

// usageOf returns what a call used. Counters that cannot be true are replaced by
// estimates: a prompt has at most one token per byte and some for the chat template.
func usageOf(a endpoint.Answer, p sentPrompt) review.Usage {
	u := a.Usage
	u.Calls = 1
	const most = 10_000_000
	believable := u.PromptTokens > 0 && u.PromptTokens <= len(p.system.String())+len(p.user.String())+1_000 && u.CompletionTokens >= 0 && u.CompletionTokens < most &&
		u.CachedTokens >= 0 && u.CachedTokens <= u.PromptTokens
	if !believable {
		return review.Usage{Calls: 1, PromptTokens: p.tokens, CompletionTokens: max(countTokens(a.Content), a.Parts), Estimated: true}
	}
	return u
}

// An endpoint that reports fewer prompt tokens than leastShare of our estimate did not read the
// prompt. Check codes are proof, too, but a server can find them without reading. No vocabulary
// in use has half as many tokens as o200k. Prompts of fewer than comparedTokens are not
// compared: the chat template of a server distorts them.
const (
	leastShare     = 0.5
	comparedTokens = 500
)

// read returns the usable part of an answer, if it proves that the endpoint read all of p.
func (run *run) read(ctx context.Context, model string, q question, p sentPrompt, a endpoint.Answer, used review.Usage) (cachedAnswer, error) {
	counted := !used.Estimated && p.tokens >= comparedTokens
	if counted && float64(used.PromptTokens) < leastShare*float64(p.tokens) {
		return cachedAnswer{}, unproven("it reports %d prompt tokens of about %d", used.PromptTokens, p.tokens)
	}
	o, cut, err := open(a, q.list)
	if err != nil {
		return cachedAnswer{}, err
	}
	if err := checkCodes(o.codes, p.codes); err != nil {
		run.endpoint.Probe(ctx) // some servers report the context of a model only while it is loaded
		context := run.contextTokens(model)
		fills := context > 0 && used.PromptTokens >= context // what is longer was cut to this
		if len(o.codes) == 0 && counted && !fills {          // it was read, as far as the endpoint's count shows
			err = a.Fail(failure.SchemaInvalid, unusableError{why: "it lists no check codes"})
		}
		return cachedAnswer{}, err
	}
	if err := run.endpoint.CheckModel(model, a); err != nil {
		return cachedAnswer{}, err
	}
	proof := review.Proof{Files: len(q.part), Codes: len(p.codes)}
	if !used.Estimated {
		proof.PromptTokens = used.PromptTokens
	}
	usable := cachedAnswer{Proof: proof, Cut: cut}
	if q.list == listVerdicts {
		var verdicts []verdict
		if verdicts, _, err = decodeItems[verdict](ctx, itemSchemas()[q.list], o.items); err == nil {
			usable.Verdicts = q.judge(verdicts) //nolint:contextcheck // parsing a few lines is not cancelled
		}
	} else {
		var remarks []remark
		var invalid int
		if remarks, invalid, err = decodeItems[remark](ctx, itemSchemas()[q.list], o.items); err == nil {
			usable.Findings, usable.remarkCounts = q.findings(remarks)
			usable.drop(review.DropInvalid, invalid)
			usable.Findings, err = run.guard.Findings(usable.Findings)
		}
	}
	if _, classified := errors.AsType[*failure.Error](err); err != nil && !classified {
		err = a.Fail(failure.SchemaInvalid, unusableError{why: err.Error()})
	}
	return usable, err
}

// An unusableError is an answer in another form than requested. why is the reason in our
// words.
type unusableError struct {
	why    string
	stored review.ArtifactRef // the answer, redacted
}

func (e unusableError) Error() string {
	if e.stored == "" {
		return "answer of the model is unusable: " + e.why
	}
	return fmt.Sprintf(`answer of the model is unusable: %s; to read it: criticizer artifact show %s --reason "WHY"`, e.why, e.stored)
}

// store stores an unusable answer for people, and returns "" if that fails.
func (run *run) store(ctx context.Context, a endpoint.Answer) review.ArtifactRef {
	text, err := run.guard.String(a.Thinking + "\n" + a.Content)
	if err != nil || run.options.Unusable == nil {
		return ""
	}
	ref, err := run.options.Unusable(ctx, strings.TrimSpace(text.String()))
	if err != nil {
		run.lg.WarnContext(ctx, "unusable answer not stored", "changelist", run.change.Number, "error", err)
	}
	return ref
}

// An overBudgetError is the error of a call that was not made because a budget
// has too few tokens left.
type overBudgetError struct{ reason review.SkipReason }

func (e overBudgetError) Error() string { return "model not asked: " + string(e.reason) }

// reserve takes the largest number of tokens that a call may use out of the budget of the
// review and out of the one that all reviews share.
func (run *run) reserve(ctx context.Context, tokens int) (review.Grant, error) {
	run.mu.Lock()
	enough := run.left >= tokens
	if enough {
		run.left -= tokens
	}
	run.mu.Unlock()
	if !enough {
		return review.Grant{}, overBudgetError{review.SkipOverBudget}
	}
	grant := review.Grant{Tokens: tokens}
	var err error
	if shared := run.options.Budget; shared != nil {
		grant, err = shared.Reserve(ctx, tokens)
	}
	if err == nil && grant.Refused {
		err = overBudgetError{review.SkipOverDay}
	}
	if err != nil {
		run.giveBack(tokens)
	}
	return grant, err
}

// settle gives back the tokens that a call did not use.
func (run *run) settle(ctx context.Context, g review.Grant, used review.Usage) {
	run.giveBack(g.Tokens - used.Tokens())
	shared := run.options.Budget
	if shared == nil {
		return
	}
	if err := shared.Settle(ctx, g, used); err != nil {
		run.lg.WarnContext(ctx, "tokens not settled: they count as used", "changelist", run.change.Number, "tokens", g.Tokens, "error", err)
	}
}

// settleFailed settles a call that failed, and returns what it used:
//   - An error in answer, and a call without an answer, used no tokens.
//   - A call that broke off used its prompt, which the endpoint has read, and what was
//     received.
//   - The usage of a canceled call is unknown, so its reservation stays.
//   - A prompt that was too long also counts against the review, so that
//     splitting it ends.
func (run *run) settleFailed(ctx context.Context, g review.Grant, prompt int, a endpoint.Answer, err error) review.Usage {
	used := review.Usage{Calls: 1}
	class := failure.ClassOf(err)
	_, refused := errors.AsType[endpoint.Error](err)
	switch {
	case refused && a.Parts == 0, !a.Begun && class != failure.NetworkTimeout:
	case ctx.Err() != nil:
		return used
	default:
		used.PromptTokens, used.CompletionTokens, used.Estimated = prompt, max(countTokens(a.Content), a.Parts), true
	}
	run.settle(ctx, g, used)
	if class == failure.TooLarge {
		run.giveBack(-g.Tokens)
	}
	return used
}

// giveBack adds tokens to the budget of the review.
func (run *run) giveBack(tokens int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.left += tokens
}
