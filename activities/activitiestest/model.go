package activitiestest

import (
	"context"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Review fakes the model. It uses the tokens that its draft names.
func (w *World) Review(ctx context.Context, _ redaction.Change, o review.Options) (review.Draft, error) {
	w.mu.Lock()
	draft, err := w.draft, w.enter("Review")
	w.mu.Unlock()
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

// SetDraft decides what the model says.
func (w *World) SetDraft(d review.Draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draft = d
}

// ReserveTokens fakes a day without a limit.
func (w *World) ReserveTokens(_ context.Context, _ review.Changelist, _ review.Version, tokens, _ int) (review.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens += tokens
	return review.Grant{Tokens: tokens}, w.enter("ReserveTokens")
}

// SettleTokens adds up what the calls used.
func (w *World) SettleTokens(_ context.Context, _ review.Changelist, _ review.Version, g review.Grant, used review.Usage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens += used.Tokens() - g.Tokens
	w.used = w.used.Add(used)
	return w.enter("SettleTokens")
}

// ReviewUsage returns what was settled.
func (w *World) ReviewUsage(context.Context, review.Changelist, review.Version) (review.Usage, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used, w.tokens, w.enter("ReviewUsage")
}

// RecordReview keeps the last record.
func (w *World) RecordReview(_ context.Context, _ review.Changelist, _ review.Version, r review.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = r
	return w.enter("RecordReview")
}

// Record is how the review was made.
func (w *World) Record() review.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made
}

// PutAs stores body under a name.
func (a *Artifacts) PutAs(_ context.Context, name string, body []byte) error {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.blobs[review.ArtifactRef(string(a.ns)+":"+name)] = body
	return a.w.enter("Put " + string(a.ns))
}

// GetAs returns what PutAs stored.
func (a *Artifacts) GetAs(_ context.Context, name string) ([]byte, error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if err := a.w.enter("Get " + string(a.ns)); err != nil {
		return nil, err
	}
	body, ok := a.w.blobs[review.ArtifactRef(string(a.ns)+":"+name)]
	if !ok {
		return nil, failure.Errorf(failure.ArtifactExpired, "nothing is called %q", name)
	}
	return body, nil
}

// ReportFindings gives each finding a token that follows from its fingerprint.
func (w *World) ReportFindings(_ context.Context, _ review.Changelist, _ review.Version, findings []review.Finding) ([]review.Finding, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reported := slices.Clone(findings)
	for i, f := range reported {
		reported[i].FeedbackToken = "token-" + f.Fingerprint()[:7]
	}
	return reported, w.enter("ReportFindings")
}

// WrongFindings knows of none.
func (w *World) WrongFindings(context.Context, []string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return nil, w.enter("WrongFindings")
}
