package activitiestest

import (
	"context"
	"slices"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Review returns the draft and uses its tokens.
func (w *World) Review(ctx context.Context, _ redaction.Change, o review.Options) (draft review.Draft, err error) {
	err = w.call("Review", func() { draft = w.draft })
	if err != nil || draft.Usage.Tokens() == 0 {
		return draft, err
	}
	grant, err := o.Budget.Reserve(ctx, draft.Usage.Tokens())
	if err != nil {
		return draft, err
	}
	o.Progress(1, 1)
	return draft, o.Budget.Settle(ctx, grant, draft.Usage)
}

// SetDraft sets the result of Review.
func (w *World) SetDraft(d review.Draft) { w.set(func() { w.draft = d }) }

// ReserveTokens reserves without a limit.
func (w *World) ReserveTokens(_ context.Context, _ review.Changelist, _ review.Version, tokens, _ int) (review.Grant, error) {
	return review.Grant{Tokens: tokens}, w.call("ReserveTokens", func() { w.tokens += tokens })
}

// SettleTokens adds up the usage.
func (w *World) SettleTokens(_ context.Context, _ review.Changelist, _ review.Version, g review.Grant, used review.Usage) error {
	return w.call("SettleTokens", func() {
		w.tokens += used.Tokens() - g.Tokens
		w.used = w.used.Add(used)
	})
}

// ReviewUsage returns the settled usage.
func (w *World) ReviewUsage(context.Context, review.Changelist, review.Version) (used review.Usage, tokens int, err error) {
	err = w.call("ReviewUsage", func() { used, tokens = w.used, w.tokens })
	return used, tokens, err
}

// RecordReview stores the record.
func (w *World) RecordReview(_ context.Context, _ review.Changelist, _ review.Version, r review.Record) error {
	return w.call("RecordReview", func() { w.record = r })
}

// Record returns the last record.
func (w *World) Record() review.Record { return get(w, func() review.Record { return w.record }) }

// ReportFindings derives the token of a finding from its fingerprint.
func (w *World) ReportFindings(_ context.Context, _ review.Changelist, _ review.Version, findings []review.Finding) ([]review.Finding, error) {
	reported := slices.Clone(findings)
	for i, f := range reported {
		reported[i].FeedbackToken = "token-" + f.Fingerprint()[:7]
	}
	return reported, w.call("ReportFindings", nil)
}

// WrongFindings returns none.
func (w *World) WrongFindings(context.Context, []string) ([]string, error) {
	return nil, w.call("WrongFindings", nil)
}
