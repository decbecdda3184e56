package review

import (
	"context"
	"time"
)

// A Desk is what surrounds the model's work on one review: who follows it, what
// was found out before, and who pays.
type Desk interface {
	// Progress is told how many of the calls are done; the total may grow. It is
	// never called twice at a time.
	Progress(done, total int)
	// Kept returns what was kept under key, nil if that is nothing.
	Kept(ctx context.Context, key string) ([]byte, error)
	// Keep keeps an answer under key, a hash of what was asked. It has passed
	// redaction.
	Keep(ctx context.Context, key string, answer []byte) error
	// Spent is how many tokens earlier attempts at this review have used.
	Spent(ctx context.Context) (int, error)
	// Reserve takes the most that a call may use out of the budget of the day.
	Reserve(ctx context.Context, tokens int) (Grant, error)
	// Settle replaces a grant by what was used.
	Settle(ctx context.Context, g Grant, used Usage) error
	// Wrong returns those of fingerprints that readers have marked wrong: they are
	// not reported again.
	Wrong(ctx context.Context, fingerprints []string) ([]string, error)
}

// A Grant is the answer to a reservation of tokens.
type Grant struct {
	Refused bool // there are not so many left today
	Tokens  int
	// Day is the one whose budget they were taken from.
	Day time.Time
}
