package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain/plaintest"
)

const token = "T0KEN-in-the-path"

var (
	signing, _ = evidence.New(secret.New("2020-01-01T00:00:00Z " + base64.StdEncoding.EncodeToString(make([]byte, 32))))
	key        = review.DeliveryKey{Changelist: 4711, Recipient: string(review.ChannelWebhook), Version: 1}
	update     = flag.Bool("update", false, "rewrite the golden file in testdata")
)

func report() review.Report {
	return review.Report{
		Changelist: 4711, Version: 1, Author: "ann", Description: "Fix <!channel> & co\nmore", Outcome: review.OutcomeFindings,
		Coverage: review.Coverage{{Path: "//depot/a.go", Lines: []review.Lines{{First: 1, Last: 2, State: review.LinesShown}}}}, Reason: "one file is too large",
		Links: review.Links{Change: "https://swarm.example.com/changes/{changelist}", File: "https://swarm.example.com/files/{path}#{line}"},
		Findings: []review.Finding{
			{Path: "//depot/a.go", StartLine: 3, Severity: review.SeverityLow, Title: "Small"},
			{Path: "//depot/b.go", Severity: review.SeverityHigh, Title: "See <https://evil.example|here>\u202e", FeedbackToken: "abcdefg234567"},
		},
	}
}

// clientOf returns a client of a server with the secret in its path, and its log.
func clientOf(t *testing.T, serve http.HandlerFunc) (*Client, *strings.Builder) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	var logs strings.Builder
	return New(slog.New(slog.NewTextHandler(&logs, nil)), secret.New(server.URL+"/services/"+token), signing), &logs
}

func TestEveryAttemptIsTheSameMessageUnderTheSameKey(t *testing.T) {
	t.Parallel()
	var bodies, keys []string
	h, logs := clientOf(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies, keys = append(bodies, string(body)), append(keys, r.Header.Get("Idempotency-Key"))
	})
	for range 2 {
		if id, err := h.Send(t.Context(), report(), key, time.Now()); err != nil || id != "webhook-"+signing.Token(key) {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || !strings.Contains(bodies[0], signing.Token(key)) || keys[0] != signing.Token(key) || keys[0] != keys[1] {
		t.Errorf("bodies %q, keys %q", bodies, keys)
	}
	if strings.Contains(logs.String(), token) {
		t.Errorf("the log contains the URL: %s", logs)
	}
}

func TestMessageMatchesGoldenFile(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(newMessage(report(), "k"), "", "  ")
	testkit.NoError(t, err)
	path := filepath.Join("testdata", "message.json")
	if *update {
		testkit.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	testkit.NoError(t, err)
	if string(got) != strings.TrimSpace(string(want)) {
		t.Errorf("%s differs from the message (run go test -update and look at the difference):\n%s", path, got)
	}
}

// Only plain text: markup could mention users and link to other sites.
func TestLimitsOfSlack(t *testing.T) {
	t.Parallel()
	r := report()
	r.Description, r.Reason = strings.Repeat("@", 5000), strings.Repeat("@", 5000) // which are four characters each
	for range 60 {
		r.Findings = append(r.Findings, review.Finding{Path: strings.Repeat("p", 4000), Title: strings.Repeat("t", 4000), Severity: review.SeverityLow, FeedbackToken: "abcdefg234567"})
	}
	m := newMessage(r, "k")
	if len(m.Blocks) > 50 || len([]rune(m.Blocks[0].Text.Text)) > 150 || !strings.HasSuffix(m.Blocks[0].Text.Text, "…") {
		t.Errorf("%d blocks, header %q", len(m.Blocks), m.Blocks[0].Text.Text)
	}
	for _, b := range m.Blocks {
		if x := b.Text; len([]rune(x.Text)) > 3000 || x.Type != "plain_text" {
			t.Errorf("a text of type %s with %d characters", x.Type, len([]rune(x.Text)))
		}
	}
	r.Links = review.Links{Change: "p4://perforce:1666/{changelist}", File: r.Links.File}
	if button := newMessage(r, "k").Blocks[1].Accessory; button != nil {
		t.Errorf("a button that Slack rejects: %+v", button)
	}
	if last := m.Blocks[len(m.Blocks)-1]; !strings.HasPrefix(last.Text.Text, "52 ") {
		t.Errorf("the last block is %+v, want the number of findings left out", last)
	}
}

// The classes of failed requests are tested in package post.
func TestOldAttemptPostsNothing(t *testing.T) {
	t.Parallel()
	reached := false
	h, _ := clientOf(t, func(http.ResponseWriter, *http.Request) { reached = true })
	if _, err := h.Send(t.Context(), report(), key, time.Now().Add(-time.Hour)); failure.ClassOf(err) != failure.NetworkTimeout || reached {
		t.Errorf("an attempt that started an hour ago: %v, posted %t", err, reached)
	}
}

func TestMessageInDoubt(t *testing.T) {
	t.Parallel()
	h := New(slog.New(slog.DiscardHandler), secret.New("https://hooks.example.com/x"), signing)
	if evidence, err := h.Lookup(t.Context(), key, "", time.Now()); err != nil || evidence.State != review.EvidenceUnknown || !evidence.AskAgain.IsZero() {
		t.Errorf("%+v, %v", evidence, err)
	}
}

// Ping posts nothing. A URL for POST only counts as up, whatever it answers to HEAD.
func TestPing(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]failure.Class{
		200: "", 403: "", 404: "", 405: "", 501: "",
		429: failure.UpstreamUnavailable, 502: failure.UpstreamUnavailable, 503: failure.UpstreamUnavailable, 504: failure.UpstreamUnavailable,
	} {
		var methods []string
		h, _ := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
			methods = append(methods, r.Method)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		err := h.Ping(t.Context())
		if err == nil && want != "" || err != nil && failure.ClassOf(err) != want || len(methods) != 1 || methods[0] != http.MethodHead {
			t.Errorf("%d: %v after %q, want %q", status, err, methods, want)
		}
		if e, ok := errors.AsType[*failure.Error](err); ok && (e.RetryAfter != 7*time.Second || strings.Contains(err.Error(), token)) {
			t.Errorf("%d: %v, retry after %s", status, err, e.RetryAfter)
		}
	}
	h := New(slog.New(slog.DiscardHandler), secret.New("http://127.0.0.1:1/services/"+token), signing)
	if err := h.Ping(t.Context()); failure.ClassOf(err) != failure.NetworkUnreachable || strings.Contains(err.Error(), token) {
		t.Errorf("no server: %v", err)
	}
}

// checkPlain fails if a text of the message about s is more than text, for Slack or for a
// service that takes it as Markdown.
func checkPlain(t *testing.T, s string) {
	t.Helper()
	r := report()
	r.Description, r.Author, r.Reason = s, s, s
	r.Findings = []review.Finding{{Path: s, Severity: review.Severity(s), Title: s}}
	m := newMessage(r, "k")
	texts := []string{m.Text}
	for _, b := range m.Blocks {
		texts = append(texts, b.Text.Text)
	}
	for _, x := range texts {
		plaintest.NoURLs(t, x)
		plaintest.NoMarkdown(t, x)
		if strings.ContainsAny(x, "<>&@") {
			t.Errorf("markup in %q", x)
		}
	}
}

// The payloads are checked by every run of the tests.
func FuzzMessage(f *testing.F) {
	for _, s := range plaintest.Payloads() {
		f.Add(s)
	}
	f.Fuzz(checkPlain)
}
