package activities

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// answers keeps what the model answered, encrypted, by the hash of what was
// asked.
type answers interface {
	PutAs(ctx context.Context, name string, body []byte) error
	// GetAs returns failure.ArtifactExpired for what is not there.
	GetAs(ctx context.Context, name string) ([]byte, error)
}

// accounts holds the tokens of all workers together.
type accounts interface {
	// ReserveTokens takes the tokens of one call out of the budget of the day, of
	// perDay tokens; 0 is no limit.
	ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error)
	SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error
	// ReviewUsage also returns the tokens that count against the review's budget.
	ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (review.Usage, int, error)
	RecordReview(ctx context.Context, cl review.Changelist, v review.Version, r review.Record) error
	feedback
}

// feedback is what readers say of findings.
type feedback interface {
	// ReportFindings gives each finding its token, the same in every attempt.
	ReportFindings(ctx context.Context, cl review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error)
	// WrongFindings returns those of fingerprints that were marked wrong.
	WrongFindings(ctx context.Context, fingerprints []string) ([]string, error)
}

// A desk is the [review.Desk] of one attempt.
type desk struct {
	*Critiquing
	attempt context.Context //nolint:containedctx // that of the activity, for its heartbeats
	req     review.Request
}

// Progress implements [review.Desk].
func (d *desk) Progress(done, total int) { showProgress(d.attempt, done, total) }

// Kept implements [review.Desk].
func (d *desk) Kept(ctx context.Context, key string) ([]byte, error) {
	body, err := d.Answers.GetAs(ctx, key)
	if failure.ClassOf(err) == failure.ArtifactExpired {
		return nil, nil
	}
	return body, err
}

// Keep implements [review.Desk].
func (d *desk) Keep(ctx context.Context, key string, answer []byte) error {
	return d.Answers.PutAs(ctx, key, answer)
}

// Spent implements [review.Desk].
func (d *desk) Spent(ctx context.Context) (int, error) {
	_, tokens, err := d.Accounts.ReviewUsage(ctx, d.req.Changelist, d.req.Version)
	return tokens, err
}

// Reserve implements [review.Desk].
func (d *desk) Reserve(ctx context.Context, tokens int) (review.Grant, error) {
	return d.Accounts.ReserveTokens(ctx, d.req.Changelist, d.req.Version, tokens, d.TokensPerDay)
}

// Settle implements [review.Desk].
func (d *desk) Settle(ctx context.Context, g review.Grant, used review.Usage) error {
	return d.Accounts.SettleTokens(ctx, d.req.Changelist, d.req.Version, g, used)
}

// Wrong implements [review.Desk].
func (d *desk) Wrong(ctx context.Context, fingerprints []string) ([]string, error) {
	return d.Accounts.WrongFindings(ctx, fingerprints)
}
