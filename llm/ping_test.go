package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// A ping reports the class that a review would report.
func TestPing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault llmsim.FaultKind
		want  failure.Class
	}{
		"the model answers":        {"", ""},
		"it is down":               {llmsim.Unavailable, failure.UpstreamUnavailable},
		"it hangs up":              {llmsim.Drop, failure.NetworkUnreachable},
		"it refuses the key":       {llmsim.InvalidKey, failure.AuthDenied},
		"the account has no money": {llmsim.InsufficientQuota, failure.QuotaExhausted},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := llmsim.New(llmsim.Config{})
			if tt.fault != "" {
				if err := endpoint.Inject(llmsim.Fault{Kind: tt.fault}); err != nil {
					t.Fatal(err)
				}
			}
			r, _ := newReviewer(t, endpoint)
			err := r.Ping(t.Context())
			if (err != nil) != (tt.want != "") || err != nil && failure.ClassOf(err) != tt.want {
				t.Errorf("ping ended with %v, want class %q", err, tt.want)
			}
			if calls := endpoint.Stats().Calls; calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

func TestPingLearnsTheDialect(t *testing.T) {
	t.Parallel()
	sent := &bodies{next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "max_completion_tokens") {
			respond(http.StatusBadRequest, `{"error":"unknown field max_completion_tokens"}`).ServeHTTP(w, r)
			return
		}
		respond(http.StatusOK, chatBody(`{"message":{"content":"ready"}}`)).ServeHTTP(w, r)
	})}
	r, _ := newReviewer(t, sent)
	if err := r.Ping(t.Context()); err != nil || len(sent.all) != 2 {
		t.Errorf("%d requests, error %v", len(sent.all), err)
	}
}
