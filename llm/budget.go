package llm

import (
	"context"
	"errors"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/review"
)

// An overBudgetError is the error of a call that was not made because a budget
// has too few tokens left.
type overBudgetError struct{ reason review.SkipReason }

func (e overBudgetError) Error() string { return "model not asked: " + string(e.reason) }

// A tokenBudget reserves and settles the tokens of the calls for one question, in
// the budget of the review and in the one that all reviews share.
type tokenBudget struct {
	run      *run
	setAside int // tokens of the review's budget for the first call
}

// room returns the tokens that the review has left for a call.
func (b *tokenBudget) room() int {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	return b.setAside + b.run.left
}

// reserve takes the largest number of tokens that a call may use out of both
// budgets.
func (b *tokenBudget) reserve(ctx context.Context, tokens int) (review.Grant, error) {
	if b.room() < tokens {
		return review.Grant{}, overBudgetError{review.SkipOverBudget}
	}
	grant := review.Grant{Tokens: tokens}
	var err error
	if shared := b.run.options.Budget; shared != nil {
		grant, err = shared.Reserve(ctx, tokens)
	}
	switch {
	case err != nil:
		return grant, err
	case grant.Refused:
		return grant, overBudgetError{review.SkipOverDay}
	}
	b.run.giveBack(b.setAside - tokens)
	b.setAside = 0
	return grant, nil
}

// settle gives back the tokens that a call did not use.
func (b *tokenBudget) settle(ctx context.Context, g review.Grant, used review.Usage) {
	b.run.giveBack(g.Tokens - used.Tokens())
	shared := b.run.options.Budget
	if shared == nil {
		return
	}
	if err := shared.Settle(ctx, g, used); err != nil {
		b.run.lg.WarnContext(ctx, "tokens not settled: they count as used", "changelist", b.run.change.Number, "tokens", g.Tokens, "error", err)
	}
}

// settleFailed settles a call that failed, and returns what it used:
//   - An error in answer, and a call without an answer, used no tokens.
//   - A call that broke off used its prompt, which the endpoint has read, and what was
//     received.
//   - The usage of a canceled call is unknown, so its reservation stays.
//   - A prompt that was too long also counts against the review, so that
//     splitting it ends.
func (b *tokenBudget) settleFailed(ctx context.Context, g review.Grant, prompt int, a endpoint.Answer, err error) review.Usage {
	used := review.Usage{Calls: 1}
	class := failure.ClassOf(err)
	_, refused := errors.AsType[endpoint.Error](err)
	switch {
	case refused && a.Parts == 0, !a.Begun() && class != failure.NetworkTimeout:
	case ctx.Err() != nil:
		return used
	default:
		used.PromptTokens, used.CompletionTokens, used.Estimated = prompt, max(countTokens(a.Content), a.Parts), true
	}
	b.settle(ctx, g, used)
	if class == failure.TooLarge {
		b.run.giveBack(-g.Tokens)
	}
	return used
}

// release gives back the tokens that were set aside and not used.
func (b *tokenBudget) release() {
	b.run.giveBack(b.setAside)
	b.setAside = 0
}

// giveBack adds tokens to the budget of the review.
func (run *run) giveBack(tokens int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.left += tokens
}
