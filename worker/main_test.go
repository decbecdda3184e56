package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli"
)

// execute runs a worker that gets no further than its command line.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	err = cli.Execute(t.Context(), newCommand(func(string) string { return "" }), args, &out, io.Discard)
	return out.String(), err
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "--version"} {
		if out, err := execute(t, flag); out == "" || err != nil {
			t.Errorf("%s: %q, %v", flag, out, err)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--stages", "nonsense"}, {"--nonsense"}, {"serve"}} {
		_, err := execute(t, args...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%v: error is %v, want a usage error", args, err)
		}
	}
}

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
	for name, tt := range map[string]struct{ address, want string }{
		"alive":                  {alive, ""},
		"alive on all addresses": {":" + port, ""},
		"dead":                   {"127.0.0.1:1", "connection refused"},
		"unhealthy":              {serve(http.StatusServiceUnavailable), "503"},
		"no address":             {"", "worker.listen is empty"},
		"not an address":         {"9464", "9464"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkHealth(t.Context(), tt.address)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
