package llm

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// canary stands in every change of these tests: no error and no log may show it.
const canary = "plumbago_ceratostigma"

var pipeline = sync.OnceValues(func() (*redaction.Pipeline, error) {
	return redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
})

func newPipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	p, err := pipeline()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// redacted makes a change of files, whose description holds the canary.
func redacted(t *testing.T, files ...review.File) redaction.Change {
	t.Helper()
	c, err := newPipeline(t).Change(review.Change{Number: 4711, User: "ann", Description: "Tidy up.\n" + canary, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// added is a file that is new and has the given lines.
func added(path string, lines ...string) review.File {
	return review.File{DepotPath: path, Action: review.ActionAdd, Type: "text", Diff: addedDiff(lines...)}
}

func addedDiff(lines ...string) string {
	return fmt.Sprintf("@@ -0,0 +1,%d @@\n+%s\n", len(lines), strings.Join(lines, "\n+"))
}

// newReviewer returns a reviewer of the endpoint and what it logs.
func newReviewer(t *testing.T, endpoint http.Handler, change ...func(*Config)) (*Reviewer, *syncBuffer) {
	t.Helper()
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	cfg := Config{BaseURL: server.URL + "/v1", Model: "test-model", Nitpicks: true}
	for _, c := range change {
		c(&cfg)
	}
	logs := &syncBuffer{}
	lg := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r, err := New(lg, newPipeline(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, logs
}

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

// A deskOf is a desk in memory, which several attempts can share.
type deskOf struct {
	mu    sync.Mutex
	kept  map[string][]byte
	spent int
	day   int // tokens left today, -1 for any number
	steps []string
	wrong []string // fingerprints that readers have marked wrong
}

func newDesk() *deskOf { return &deskOf{kept: map[string][]byte{}, day: -1} }

func (d *deskOf) Progress(done, total int) {
	d.steps = append(d.steps, fmt.Sprintf("%d/%d", done, total))
}

func (d *deskOf) Kept(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept[key], nil
}

func (d *deskOf) Keep(_ context.Context, key string, answer []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[key] = answer
	return nil
}

func (d *deskOf) Spent(context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spent, nil
}

func (d *deskOf) Reserve(_ context.Context, tokens int) (review.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.day >= 0 && tokens > d.day {
		return review.Grant{Refused: true}, nil
	}
	if d.day >= 0 {
		d.day -= tokens
	}
	d.spent += tokens
	return review.Grant{Tokens: tokens}, nil
}

func (d *deskOf) Wrong(context.Context, []string) ([]string, error) { return d.wrong, nil }

func (d *deskOf) Settle(_ context.Context, g review.Grant, used review.Usage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spent += used.Tokens() - g.Tokens
	if d.day >= 0 {
		d.day += g.Tokens - used.Tokens()
	}
	return nil
}

// places counts the places that findings name.
func places(findings []review.Finding) int {
	n := len(findings)
	for _, f := range findings {
		n += len(f.Places)
	}
	return n
}
