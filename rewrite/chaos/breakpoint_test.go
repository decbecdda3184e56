package chaos

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A moment is the time of a fault, identified by a request to the provider.
type moment struct {
	method, path string // path is a prefix
	end          string // suffix of the path
	answered     bool   // after the provider has executed the request, before the reply
	times        int
}

// A breakpoint forwards requests to the provider and runs an action at its moment.
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

// count returns how often the breakpoint was reached since it was armed.
func (b *breakpoint) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reached
}

// matches reports whether the action is due at r.
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

// ServeHTTP implements [http.Handler].
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
