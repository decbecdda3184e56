package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckHealth(t *testing.T) {
	t.Parallel()
	serve := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("requested %s", r.URL.Path)
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	alive := serve(http.StatusOK)
	_, port, _ := strings.Cut(alive, ":")
	tests := map[string]struct{ address, want string }{
		"alive":                  {alive, ""},
		"alive on all addresses": {":" + port, ""},
		"dead":                   {"127.0.0.1:1", "connection refused"},
		"unhealthy":              {serve(http.StatusServiceUnavailable), "503"},
		"no address":             {"", "worker.listen is empty"},
		"not an address":         {"9464", "9464"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkHealth(t.Context(), tt.address)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
