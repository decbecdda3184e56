package review

import (
	"context"
	"time"
)

// Options connect one attempt at a review by the model to other attempts and other
// reviews. The zero value connects it to none.
type Options struct {
	// Cache holds the answers of earlier attempts and versions. Default: none.
	Cache AnswerCache
	// Budget is the token budget that all reviews share. Default: unlimited.
	Budget TokenBudget
	// Spent is how many tokens earlier attempts at this review used.
	Spent int
	// FindWrong returns for each finding whether it is accepted to be wrong: these findings
	// are not reported. Default: it returns none.
	FindWrong func(ctx context.Context, findings []Finding) ([]bool, error)
	// Unusable stores an answer that could not be used, which has passed redaction, for
	// people. Default: none is stored.
	Unusable func(ctx context.Context, answer string) (ArtifactRef, error)
	// Progress receives the number of finished calls after each call; the total may
	// grow. Calls of Progress do not overlap. Default: none.
	Progress func(done, total int)
}

// An AnswerCache stores answers of the model, which have passed redaction, by a hash of
// the question.
type AnswerCache interface {
	// Get returns nil if the cache has no answer for key.
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, answer []byte) error
}

// A TokenBudget limits how many tokens all reviews of a day use together.
type TokenBudget interface {
	// Reserve takes the largest number of tokens that a call may use.
	Reserve(ctx context.Context, tokens int) (Grant, error)
	// Settle replaces a grant by what the call used.
	Settle(ctx context.Context, g Grant, used Usage) error
}

// A Grant is the answer to a reservation of tokens.
type Grant struct {
	Refused bool // the budget of the day has fewer tokens left
	Tokens  int
	Day     time.Time // whose budget the tokens were taken from
}
