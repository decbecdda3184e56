package eval

import (
	"context"
	"sync"

	"github.com/criticizer/criticizer/review"
)

// attempts is the state that the attempts at one review share: the answer cache
// and the usage.
type attempts struct {
	mu      sync.Mutex
	used    review.Usage
	answers map[string][]byte
}

func (a *attempts) options() review.Options {
	a.mu.Lock()
	defer a.mu.Unlock()
	return review.Options{Cache: a, Budget: a, Spent: a.used.Tokens()}
}

// Get implements [review.AnswerCache].
func (a *attempts) Get(_ context.Context, key string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers[key], nil
}

// Put implements [review.AnswerCache].
func (a *attempts) Put(_ context.Context, key string, answer []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[key] = answer
	return nil
}

// Reserve implements [review.TokenBudget] without a limit.
func (a *attempts) Reserve(_ context.Context, tokens int) (review.Grant, error) {
	return review.Grant{Tokens: tokens}, nil
}

// Settle implements [review.TokenBudget].
func (a *attempts) Settle(_ context.Context, _ review.Grant, used review.Usage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = a.used.Add(used)
	return nil
}
