package activities

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// answers stores answers of the model, encrypted, by a hash of the question.
type answers interface {
	PutAs(ctx context.Context, name string, body []byte) error
	// GetAs returns failure.ArtifactExpired for an answer that is not stored.
	GetAs(ctx context.Context, name string) ([]byte, error)
}

// accounts stores what reviews cost and how readers rated findings.
type accounts interface {
	// ReserveTokens takes the tokens of one call from the budget of the day, which is
	// perDay tokens; 0 is unlimited.
	ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error)
	SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error
	// ReviewUsage also returns the tokens that count against the review's budget.
	ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (review.Usage, int, error)
	RecordReview(ctx context.Context, cl review.Changelist, v review.Version, r review.Record) error
	// ReportFindings gives each finding its token, which is the same in every attempt.
	ReportFindings(ctx context.Context, cl review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error)
	// WrongFindings returns the fingerprints that readers marked as wrong.
	WrongFindings(ctx context.Context, fingerprints []string) ([]string, error)
}

// options returns the answer cache and the token budget, which the attempts at a review
// share, and what they have used. ctx is the activity's context.
func (c *Critiquing) options(ctx context.Context, req review.Request) (review.Options, error) {
	_, spent, err := c.Accounts.ReviewUsage(ctx, req.Changelist, req.Version)
	if err != nil {
		return review.Options{}, about(req.Changelist, "read tokens spent", err)
	}
	return review.Options{
		Cache:     answerCache{c.Answers},
		Budget:    tokenBudget{c.Accounts, req, c.TokensPerDay},
		Spent:     spent,
		FindWrong: c.Accounts.WrongFindings,
		Progress:  func(done, total int) { showProgress(ctx, done, total) },
	}, nil
}

// answerCache implements [review.AnswerCache].
type answerCache struct{ answers }

func (a answerCache) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := a.GetAs(ctx, key)
	if failure.ClassOf(err) == failure.ArtifactExpired {
		return nil, nil
	}
	return body, err
}

func (a answerCache) Put(ctx context.Context, key string, answer []byte) error {
	return a.PutAs(ctx, key, answer)
}

// tokenBudget implements [review.TokenBudget] for one review.
type tokenBudget struct {
	accounts accounts
	req      review.Request
	perDay   int
}

func (b tokenBudget) Reserve(ctx context.Context, tokens int) (review.Grant, error) {
	return b.accounts.ReserveTokens(ctx, b.req.Changelist, b.req.Version, tokens, b.perDay)
}

func (b tokenBudget) Settle(ctx context.Context, g review.Grant, used review.Usage) error {
	return b.accounts.SettleTokens(ctx, b.req.Changelist, b.req.Version, g, used)
}
