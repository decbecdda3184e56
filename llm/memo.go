package llm

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// memoSize bounds the answers kept: some dozens of reviews, a few megabytes.
const memoSize = 512

// A memo keeps the answers that were paid for in reviews that then failed, so
// that the next attempt asks only for the rest. It lasts as long as the
// process; losing it costs money, not correctness. The answers of a review
// that succeeded are dropped: a rerun is asked anew.
type memo struct {
	mu      sync.Mutex
	answers map[memoKey]answer
	order   []memoKey // oldest first
}

// A memoKey is the hash of what a request shows; the rest of it is the same in
// all, but for the fence.
type memoKey [sha256.Size]byte

func keyOf(text string) memoKey { return sha256.Sum256([]byte(text)) }

func newMemo() *memo { return &memo{answers: map[memoKey]answer{}} }

func (m *memo) get(k memoKey) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.answers[k]
	return a, ok
}

func (m *memo) put(k memoKey, a answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.answers[k]; !ok {
		m.order = append(m.order, k)
	}
	m.answers[k] = a
	if len(m.order) > memoSize {
		delete(m.answers, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
}

func (m *memo) drop(keys []memoKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		delete(m.answers, k)
	}
	m.order = slices.DeleteFunc(m.order, func(k memoKey) bool {
		_, kept := m.answers[k]
		return !kept
	})
}
