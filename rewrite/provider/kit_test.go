package provider_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

// canary is in every message of these tests: no error and no log may contain it.
const canary = "plumbago_ceratostigma"

const apiKey = "key-of-these-tests"

var pipeline = sync.OnceValue(func() *redaction.Pipeline {
	p, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret"), Emails: true})
	if err != nil {
		panic(err)
	}
	return p
})

func text(t *testing.T, s string) redaction.Text {
	t.Helper()
	m, err := pipeline().Message("job", s)
	testkit.NoError(t, err)
	return m.Text
}

// complaint is an item whose message contains an address and the canary.
func complaint(t *testing.T, id string) rewrite.Item {
	t.Helper()
	return rewrite.Item{
		JobID: id, Strength: rewrite.LightTouch,
		Languages:   rewrite.LanguagePair{From: "en", To: "en"},
		Text:        text(t, "You never clean the kitchen! Write to ann@corp.example about it. "+canary),
		Preferences: map[string]redaction.Text{"tone": text(t, "warm")},
	}
}

// to is a routing decision for the provider of newRewriter.
func to(kind rewrite.AdapterKind) rewrite.RoutingDecision {
	return rewrite.RoutingDecision{
		Provider: "openai", AdapterKind: kind, Model: "m", PromptVersion: "v1", PolicyVersion: "p1", Mode: rewrite.Batch,
	}
}

// newRewriter returns a rewriter whose providers openai and google are the endpoint, and
// its log.
func newRewriter(t *testing.T, endpoint http.Handler, change ...func(*provider.Config)) (*provider.Rewriter, *logged) {
	t.Helper()
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	cfg := provider.Config{Timeout: 2 * time.Minute, MaxAnswerTokens: 4_000, Providers: map[string]provider.Provider{
		"openai": {BaseURL: server.URL + "/v1", APIKey: secret.New(apiKey)},
		"google": {BaseURL: server.URL + "/v1beta", APIKey: secret.New(apiKey)},
	}}
	for _, c := range change {
		c(&cfg)
	}
	logs := &logged{}
	r, err := provider.New(slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})), pipeline(), cfg)
	testkit.NoError(t, err)
	return r, logs
}

func newSim() *llmsim.Server { return llmsim.New(llmsim.Config{APIKey: secret.New(apiKey)}) }

type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// mustNotShow fails if s quotes the message, the model or the key.
func mustNotShow(t *testing.T, what, s string) {
	t.Helper()
	for _, secret := range []string{canary, "kitchen", "ann@corp", apiKey, "llm***key", "Rate limit reached for"} {
		if strings.Contains(s, secret) {
			t.Errorf("%s shows %q: %s", what, secret, s)
		}
	}
}
