package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// readyTimeout limits one readiness check.
const readyTimeout = 5 * time.Second

// Serve serves /healthz, /readyz and /metrics on address until stop is called.
// /healthz reports that the process is alive, /readyz the error of ready. That error
// is shown to every client: it must not contain secrets.
func Serve(address string, m *Metrics, ready func(context.Context) error) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (worker.listen): %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readyTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			m.lg.Error("serving metrics failed", "error", err)
		}
	}, nil
}
