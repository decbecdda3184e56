package llm

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An overBudgetError is a call that was not made because nobody pays for it.
type overBudgetError struct{ reason review.SkipReason }

func (e overBudgetError) Error() string { return "model not asked: " + string(e.reason) }

// A tokenBudget pays for the calls that answer one question, repeats included.
type tokenBudget struct {
	run *run
	// prepaid was set aside for the first call.
	prepaid int
}

// affords reports whether the review has tokens left for a call.
func (b *tokenBudget) affords(tokens int) bool {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	return b.prepaid+b.run.left >= tokens
}

// pay takes the most that a call may use out of both budgets.
func (b *tokenBudget) pay(ctx context.Context, tokens int) (review.Grant, error) {
	if !b.affords(tokens) {
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
	b.run.give(b.prepaid - tokens)
	b.prepaid = 0
	return grant, nil
}

// settle gives back what an answered call did not use.
func (b *tokenBudget) settle(ctx context.Context, g review.Grant, used review.Usage) {
	b.run.give(g.Tokens - used.Tokens())
	shared := b.run.options.Budget
	if shared == nil {
		return
	}
	if err := shared.Settle(ctx, g, used); err != nil {
		b.run.lg.WarnContext(ctx, "tokens not settled: they count as used", "changelist", b.run.change.Number, "tokens", g.Tokens, "error", err)
	}
}

// failed settles a call that failed. One that was answered, or never arrived,
// cost nothing. Of one that timed out the prompt counts, for it was read; and
// one that was broken off from here stays as it is, for nobody knows. A prompt
// that was too long counts for the review, so that splitting it comes to an end.
func (b *tokenBudget) failed(ctx context.Context, g review.Grant, answered bool, class failure.Class) {
	used := review.Usage{Calls: 1}
	switch {
	case answered, class == failure.NetworkUnreachable:
	case class == failure.NetworkTimeout:
		used.PromptTokens, used.Estimated = g.Tokens-b.run.cfg.MaxAnswerTokens, true
	default:
		return
	}
	b.settle(ctx, g, used)
	if class == failure.TooLarge {
		b.run.give(-g.Tokens)
	}
}

// close gives back what was set aside and not needed.
func (b *tokenBudget) close() {
	b.run.give(b.prepaid)
	b.prepaid = 0
}
