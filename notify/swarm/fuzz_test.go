package swarm

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
)

// No answer of a server that has not seen the key makes our comment exist, and a look-up
// changes nothing.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"reviews":[{"id":12,"versions":[1,2]}],"comments":[{"id":1,"user":"bot","body":"x\ncriticizer-key 00"}],"lastSeen":1}`))
	f.Add([]byte(`{"reviews":[{"id":-1,"versions":null}],"comments":[],"lastSeen":-9,"data":{"testruns":[{"test":"criticizer","messages":[""]}]}}`))
	f.Add([]byte(`{"reviews":[{"id":9223372036854775807}],"comments":[{"user":"bot","body":"criticizer-key "}],"lastSeen":9223372036854775807}`))
	f.Add([]byte(`[]`))
	f.Add([]byte("<html>"))
	keys, err := evidence.New(secret.New("2020-01-01T00:00:00Z "+base64.StdEncoding.EncodeToString(make([]byte, 32))), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	var answer []byte
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			panic("a look-up posted")
		}
		_, _ = w.Write(answer)
	}))
	f.Cleanup(listener.Close)
	s := New(slog.New(slog.DiscardHandler), Config{URL: listener.URL, User: "bot", Ticket: secret.New(ticket), Test: "criticizer", FailSeverity: review.SeverityHigh, Keys: keys})
	f.Fuzz(func(t *testing.T, body []byte) {
		answer = body
		found, err := s.Lookup(t.Context(), key, "", time.Now().Add(-time.Hour))
		if err == nil && found.State == review.EvidenceAccepted {
			t.Errorf("the answer %q counts as our comment: %+v", body, found)
		}
	})
}
