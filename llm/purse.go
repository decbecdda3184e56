package llm

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An overBudgetError is a call that was not made because nobody pays for it.
type overBudgetError struct{ reason review.SkipReason }

func (e overBudgetError) Error() string { return "model not asked: " + string(e.reason) }

// A purse pays for the calls that answer one question, repeats included.
type purse struct {
	run *run
	// prepaid was set aside for the first call.
	prepaid int
}

// affords reports whether the review has tokens left for a call.
func (p *purse) affords(tokens int) bool {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.prepaid+p.run.left >= tokens
}

// pay takes the most that a call may use out of both budgets.
func (p *purse) pay(ctx context.Context, tokens int) (review.Grant, error) {
	if !p.affords(tokens) {
		return review.Grant{}, overBudgetError{review.SkipOverBudget}
	}
	grant, err := p.run.desk.Reserve(ctx, tokens)
	switch {
	case err != nil:
		return grant, err
	case grant.Refused:
		return grant, overBudgetError{review.SkipOverDay}
	}
	p.run.give(p.prepaid - tokens)
	p.prepaid = 0
	return grant, nil
}

// settle gives back what an answered call did not use.
func (p *purse) settle(ctx context.Context, g review.Grant, used review.Usage) {
	p.run.give(g.Tokens - used.Tokens())
	if err := p.run.desk.Settle(ctx, g, used); err != nil {
		p.run.lg.WarnContext(ctx, "tokens not settled: they count as used", "changelist", p.run.change.Number, "tokens", g.Tokens, "error", err)
	}
}

// failed settles a call that failed. One that was answered, or never arrived,
// cost nothing. Of one that timed out the prompt counts, for it was read; and
// one that was broken off from here stays as it is, for nobody knows. A prompt
// that was too long counts for the review, so that splitting it comes to an end.
func (p *purse) failed(ctx context.Context, g review.Grant, answered bool, class failure.Class) {
	used := review.Usage{Calls: 1}
	switch {
	case answered, class == failure.NetworkUnreachable:
	case class == failure.NetworkTimeout:
		used.PromptTokens, used.Estimated = g.Tokens-p.run.cfg.MaxAnswerTokens, true
	default:
		return
	}
	p.settle(ctx, g, used)
	if class == failure.TooLarge {
		p.run.give(-g.Tokens)
	}
}

// close gives back what was set aside and not needed.
func (p *purse) close() {
	p.run.give(p.prepaid)
	p.prepaid = 0
}
