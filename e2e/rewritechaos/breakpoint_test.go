package rewritechaos

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A moment is when a worker is struck, as the provider sees it.
type moment struct {
	method, path string // of the request; path is how it begins
	end          string // how it ends
	answered     bool   // after the provider has carried it out, before the worker is told
	times        int
}

// A trap stands before the provider and strikes at its moment.
type breakpoint struct {
	provider http.Handler
	action   func()

	mu      sync.Mutex
	at      moment
	reached int
}

func (b *breakpoint) arm(at moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.reached = at, 0
}

// strikes is how often it has struck since it was set.
func (b *breakpoint) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reached
}

// takes reports whether r is to be struck at.
func (b *breakpoint) matches(r *http.Request) (at moment, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at = b.at
	ok = b.reached < at.times && r.Method == at.method && strings.HasPrefix(r.URL.Path, at.path) && strings.HasSuffix(r.URL.Path, at.end)
	if ok {
		b.reached++
	}
	return at, ok
}

// ServeHTTP implements http.Handler.
func (b *breakpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, ok := b.matches(r)
	if !ok {
		b.provider.ServeHTTP(w, r)
		return
	}
	if at.answered {
		b.provider.ServeHTTP(httptest.NewRecorder(), r)
	}
	b.action()
	panic(http.ErrAbortHandler)
}
