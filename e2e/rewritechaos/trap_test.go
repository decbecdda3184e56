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
type trap struct {
	provider http.Handler
	strike   func()

	mu     sync.Mutex
	at     moment
	struck int
}

func (tr *trap) set(at moment) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.at, tr.struck = at, 0
}

// strikes is how often it has struck since it was set.
func (tr *trap) strikes() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.struck
}

// takes reports whether r is to be struck at.
func (tr *trap) takes(r *http.Request) (at moment, ok bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at = tr.at
	ok = tr.struck < at.times && r.Method == at.method && strings.HasPrefix(r.URL.Path, at.path) && strings.HasSuffix(r.URL.Path, at.end)
	if ok {
		tr.struck++
	}
	return at, ok
}

// ServeHTTP implements http.Handler.
func (tr *trap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, ok := tr.takes(r)
	if !ok {
		tr.provider.ServeHTTP(w, r)
		return
	}
	if at.answered {
		tr.provider.ServeHTTP(httptest.NewRecorder(), r)
	}
	tr.strike()
	panic(http.ErrAbortHandler)
}
