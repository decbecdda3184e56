package eval

import (
	"context"
	"sync"

	"github.com/criticizer/criticizer/review"
)

// A desk surrounds one review: it counts what all attempts use, and keeps
// answers from one attempt for the next and no longer. Nobody has marked any
// finding wrong.
type desk struct {
	mu   sync.Mutex
	used review.Usage
	kept map[string][]byte
}

func newDesk() *desk { return &desk{kept: map[string][]byte{}} }

// Progress implements [review.Desk], as all methods do.
func (d *desk) Progress(int, int) {}

func (d *desk) Kept(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept[key], nil
}

func (d *desk) Keep(_ context.Context, key string, answer []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[key] = answer
	return nil
}

func (d *desk) Spent(context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used.Tokens(), nil
}

func (d *desk) Reserve(_ context.Context, tokens int) (review.Grant, error) {
	return review.Grant{Tokens: tokens}, nil
}

func (d *desk) Settle(_ context.Context, _ review.Grant, used review.Usage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = d.used.Add(used)
	return nil
}

func (d *desk) Wrong(context.Context, []string) ([]string, error) { return nil, nil }
