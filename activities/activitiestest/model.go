package activitiestest

import (
	"context"
	"fmt"
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

// An account is the usage of one review, and the tokens that count against its budget.
type account struct {
	used   review.Usage
	tokens int
}

func (w *World) account(of review.Owner) *account {
	if w.spent[of] == nil {
		w.spent[of] = &account{}
	}
	return w.spent[of]
}

// ReserveTokens reserves tokens of one day, which does not end.
func (w *World) ReserveTokens(_ context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (g review.Grant, err error) {
	err = w.call("ReserveTokens", func() {
		if perDay > 0 && w.ofDay+tokens > perDay {
			g.Refused = true
			return
		}
		w.ofDay += tokens
		w.account(review.Owner{Changelist: cl, Version: v}).tokens += tokens
		g = review.Grant{Tokens: tokens, Day: w.change.Time}
	})
	return g, err
}

// SettleTokens adds up the usage of a review that has reserved tokens or has a record.
func (w *World) SettleTokens(_ context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error {
	return w.call("SettleTokens", func() {
		more := used.Tokens() - g.Tokens
		if !g.Day.IsZero() {
			w.ofDay = max(0, w.ofDay+more)
		}
		if a := w.spent[review.Owner{Changelist: cl, Version: v}]; a != nil {
			used.Kept, used.Unproven = 0, 0
			a.used, a.tokens = a.used.Add(used), max(0, a.tokens+more)
		}
	})
}

// ReviewUsage returns the settled usage.
func (w *World) ReviewUsage(_ context.Context, cl review.Changelist, v review.Version) (used review.Usage, tokens int, err error) {
	err = w.call("ReviewUsage", func() {
		if a := w.spent[review.Owner{Changelist: cl, Version: v}]; a != nil {
			used, tokens = a.used, a.tokens
		}
	})
	return used, tokens, err
}

// RecordReview stores the record.
func (w *World) RecordReview(_ context.Context, cl review.Changelist, v review.Version, r review.Record) error {
	return w.call("RecordReview", func() {
		w.account(review.Owner{Changelist: cl, Version: v})
		w.record = r
	})
}

// Record returns the last record.
func (w *World) Record() review.Record { return get(w, func() review.Record { return w.record }) }

// ReportFindings derives the token of a finding from its version and fingerprint.
func (w *World) ReportFindings(_ context.Context, _ review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error) {
	reported := slices.Clone(findings)
	for i, f := range reported {
		reported[i].FeedbackToken = fmt.Sprintf("token%02d%s", v, f.Fingerprint()[:6])
	}
	return reported, w.call("ReportFindings", nil)
}

// WrongFindings returns none.
func (w *World) WrongFindings(context.Context, []string) ([]string, error) {
	return nil, w.call("WrongFindings", nil)
}
