package llm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// canary is part of every change of these tests. No error or log may contain it.
const canary = "plumbago_ceratostigma"

var pipeline = sync.OnceValues(func() (*redaction.Pipeline, error) {
	return redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
})

func newPipeline(tb testing.TB) *redaction.Pipeline {
	tb.Helper()
	p, err := pipeline()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// redacted returns a change of files whose description holds the canary.
func redacted(tb testing.TB, files ...review.File) redaction.Change {
	tb.Helper()
	c, err := newPipeline(tb).Change(review.Change{Number: 4711, User: "ann", Description: "Tidy up.\n" + canary, Files: files})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// added returns a new file with the given lines.
func added(path string, lines ...string) review.File {
	return review.File{DepotPath: path, Action: review.ActionAdd, Type: "text", Diff: addedDiff(lines...)}
}

func addedDiff(lines ...string) string {
	return fmt.Sprintf("@@ -0,0 +1,%d @@\n+%s\n", len(lines), strings.Join(lines, "\n+"))
}

// newReviewer returns a reviewer that uses endpoint, and its log.
func newReviewer(tb testing.TB, endpoint http.Handler, change ...func(*Config)) (*Reviewer, *syncBuffer) {
	tb.Helper()
	server := httptest.NewServer(endpoint)
	tb.Cleanup(server.Close)
	cfg := config.Default[Config]()
	cfg.BaseURL, cfg.Model, cfg.MinSeverity, cfg.Verify = server.URL+"/v1", "test-model", withNitpicks, VerifyOff
	for _, c := range change {
		c(&cfg)
	}
	logs := &syncBuffer{}
	lg := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r, err := New(lg, newPipeline(tb), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r, logs
}

// A simulated is a reviewer that uses the simulator.
type simulated struct {
	*Reviewer
	sim  *llmsim.Server
	sent *bodies
	logs *syncBuffer
}

// withFaults returns a reviewer whose endpoint has faults.
func withFaults(tb testing.TB, change func(*Config), faults ...llmsim.Fault) simulated {
	tb.Helper()
	sim := llmsim.New(llmsim.Config{})
	sim.Inject(faults...)
	return simulate(tb, sim, change)
}

func simulate(tb testing.TB, sim *llmsim.Server, change func(*Config)) simulated {
	tb.Helper()
	sent := &bodies{next: sim}
	r, logs := newReviewer(tb, sent, func(c *Config) {
		if change != nil {
			change(c)
		}
	})
	return simulated{r, sim, sent, logs}
}

// review is Review without options.
func (s simulated) review(tb testing.TB, files ...review.File) (review.Draft, error) {
	tb.Helper()
	return s.Review(tb.Context(), redacted(tb, files...), review.Options{})
}

func (s simulated) calls() int { return s.sim.Stats().Calls }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// mustNotShow fails if s quotes the change or the endpoint.
func mustNotShow(t *testing.T, what, s string, secrets ...string) {
	t.Helper()
	for _, secret := range append(secrets, canary) {
		if strings.Contains(s, secret) {
			t.Errorf("%s shows %q: %s", what, secret, s)
		}
	}
}

// attempts is the state that several attempts at a review share.
type attempts struct {
	mu      sync.Mutex
	answers map[string][]byte
	spent   int
	day     int      // tokens left today; -1 is unlimited
	wrong   []string // fingerprints of findings that are accepted to be wrong
}

func newAttempts() *attempts { return &attempts{answers: map[string][]byte{}, day: -1} }

// options returns the options of the next attempt.
func (a *attempts) options() review.Options {
	a.mu.Lock()
	defer a.mu.Unlock()
	return review.Options{
		Cache: a, Budget: a, Spent: a.spent,
		FindWrong: func(_ context.Context, findings []review.Finding) (wrong []bool, err error) {
			for _, f := range findings {
				wrong = append(wrong, slices.Contains(a.wrong, f.Fingerprint()))
			}
			return wrong, nil
		},
	}
}

func (a *attempts) Get(_ context.Context, key string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers[key], nil
}

func (a *attempts) Put(_ context.Context, key string, answer []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[key] = answer
	return nil
}

func (a *attempts) Reserve(_ context.Context, tokens int) (review.Grant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.day >= 0 && tokens > a.day {
		return review.Grant{Refused: true}, nil
	}
	if a.day >= 0 {
		a.day -= tokens
	}
	a.spent += tokens
	return review.Grant{Tokens: tokens}, nil
}

func (a *attempts) Settle(_ context.Context, g review.Grant, used review.Usage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent += used.Tokens() - g.Tokens
	if a.day >= 0 {
		a.day += g.Tokens - used.Tokens()
	}
	return nil
}

// read returns how many files of the draft were read in full.
func read(d review.Draft) int { return d.Coverage.Tally().Read }

// unread returns why the other files were not.
func unread(d review.Draft) map[string]review.SkipReason {
	all := map[string]review.SkipReason{}
	for _, f := range d.Coverage {
		if _, why := f.Worst(); why != "" {
			all[f.Path] = why
		}
	}
	return all
}

// places counts the places of findings.
func places(findings []review.Finding) int {
	n := len(findings)
	for _, f := range findings {
		n += len(f.Places)
	}
	return n
}

// leak is part of the text of every error response.
const leak = "theEndpointSaidThis"

// respond answers every request with the same response. Its lists of findings get the
// check codes of the prompt, and its usage that of the prompt.
func respond(status int, body string, header ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prompt, _ := io.ReadAll(r.Body)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		body := strings.Replace(body, `"prompt_tokens":1500`, fmt.Sprintf(`"prompt_tokens":%d`, len(prompt)/4), 1)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, `{\"findings\":[`, `{\"codes\":[`+quotedCodes(prompt)+`],\"findings\":[`))
	})
}

// quotedCodes returns the check codes of a request as elements of a JSON list in a
// JSON string.
func quotedCodes(request []byte) string {
	var codes []string
	for _, m := range regexp.MustCompile(`(?:"|\\n)check-code: ([0-9a-f]{8})`).FindAllSubmatch(request, -1) {
		codes = append(codes, `\"`+string(m[1])+`\"`)
	}
	return strings.Join(codes, ",")
}

// chatBody returns a response body with the given choice.
func chatBody(choice string) string {
	return `{"id":"c","object":"chat.completion","model":"test-model","choices":[` + choice + `],"usage":{"prompt_tokens":1500,"completion_tokens":5}}`
}
