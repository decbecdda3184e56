package llm

import (
	"io"
	"net/http"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// A ping reports the class that a review would report.
func TestPing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		faults []llmsim.Fault
		want   failure.Class
	}{
		"the model answers":        {nil, ""},
		"it hangs up":              {[]llmsim.Fault{{Kind: llmsim.Drop}}, failure.NetworkUnreachable},
		"the account has no money": {[]llmsim.Fault{{Kind: llmsim.InsufficientQuota}}, failure.QuotaExhausted},
	} {
		r := withFaults(t, nil, tt.faults...)
		err := r.Ping(t.Context())
		if (err != nil) != (tt.want != "") || err != nil && failure.ClassOf(err) != tt.want || r.calls() != 1 {
			t.Errorf("%s: %v after %d calls, want class %q", name, err, r.calls(), tt.want)
		}
	}
}

func TestPingAdapts(t *testing.T) {
	t.Parallel()
	l := &liar{lies: func(w http.ResponseWriter, h heard) {
		if h.field == "max_tokens" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"unknown field max_tokens, use max_completion_tokens"}`)
			return
		}
		said200(w, "ready", "stop", 5, 1)
	}}
	r, _ := newReviewer(t, l)
	if err := r.Ping(t.Context()); err != nil || len(l.all) != 2 {
		t.Errorf("%d requests, error %v", len(l.all), err)
	}
}
