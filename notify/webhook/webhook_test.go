package webhook

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

const token = "T0KEN-in-the-path"

var key = review.DeliveryKey{Changelist: 4711, Recipient: string(review.ChannelWebhook), Version: 1}

func report() review.Report {
	return review.Report{
		Changelist: 4711, Version: 1, Author: "ann", Description: "Fix <!channel> & co\nmore", Outcome: review.OutcomeFindings,
		FilesTotal: 2, FilesRead: 2,
		Findings: []review.Finding{
			{Path: "//depot/a.go", StartLine: 3, Severity: review.SeverityLow, Title: "Small"},
			{Path: "//depot/b.go", Severity: review.SeverityHigh, Title: "See <https://evil.example|here>\u202e", FeedbackToken: "abcdefg234567"},
		},
	}
}

// hookTo posts to a server with the secret in its path, and keeps what is logged.
func hookTo(t *testing.T, serve http.HandlerFunc) (*Hook, *strings.Builder) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	var logs strings.Builder
	h, err := New(slog.New(slog.NewTextHandler(&logs, nil)), Config{URL: secret.New(server.URL + "/services/" + token)})
	if err != nil {
		t.Fatal(err)
	}
	return h, &logs
}

func TestEveryAttemptIsTheSameMessageUnderTheSameKey(t *testing.T) {
	t.Parallel()
	var bodies, keys []string
	h, logs := hookTo(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies, keys = append(bodies, string(body)), append(keys, r.Header.Get("Idempotency-Key"))
	})
	for range 2 {
		if id, err := h.Send(t.Context(), report(), key, time.Now()); err != nil || id != "webhook-"+key.Token() {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || keys[0] != key.Token() || keys[0] != keys[1] {
		t.Errorf("bodies %q, keys %q", bodies, keys)
	}
	if strings.Contains(logs.String(), token) {
		t.Errorf("the log shows the URL: %s", logs)
	}
}

func TestMessageIsWhatSlackTakes(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(newMessage(report()))
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Text != "[criticizer] CL 4711: Fix &lt;!channel&gt; &amp; co: findings: 2" {
		t.Errorf("text %q", m.Text)
	}
	var all []string
	for _, b := range m.Blocks {
		for _, x := range append(b.Elements, *textOf(b)) {
			if x.Type != "plain_text" {
				t.Errorf("%q is %s: markup could mention and link", x.Text, x.Type)
			}
			all = append(all, x.Text)
		}
	}
	got := strings.Join(all, "\n")
	for _, want := range []string{"CL 4711: Fix", "reviewed 2 of 2 files", "high | //depot/b.go\nSee <https://evil.example|here>\ufffd", "criticizer feedback abcdefg234567 useful|wrong", "low | //depot/a.go:3\nSmall"} {
		_, after, ok := strings.Cut(got, want)
		if !ok {
			t.Errorf("no %q, or not in the order of severity, in\n%s", want, got)
		}
		got = after
	}
}

// textOf is the text of a block, empty if it has elements.
func textOf(b block) *text {
	if b.Text == nil {
		return plain("")
	}
	return b.Text
}

// Whatever came of a review, only a clean one reads like one.
func TestOutcomesAreTold(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[review.Outcome]string{
		review.OutcomeClean: "no findings", review.OutcomeFindings: "findings: 2",
		review.OutcomePartial: "only partly reviewed, findings in that part: 2", review.OutcomeNotReviewed: "not reviewed",
	} {
		r := report()
		r.Outcome, r.Reason = outcome, "because"
		if got := newMessage(r).Blocks[1].Text.Text; !strings.HasPrefix(got, "Result: "+want+"\n") || !strings.HasSuffix(got, "Reason: because") {
			t.Errorf("%s reads %q", outcome, got)
		}
	}
}

func TestLimitsOfSlackAreKept(t *testing.T) {
	t.Parallel()
	r := report()
	r.Description, r.Reason = strings.Repeat("ä", 5000), strings.Repeat("x", 5000)
	for range 60 {
		r.Findings = append(r.Findings, review.Finding{Path: strings.Repeat("p", 4000), Title: strings.Repeat("t", 4000), Severity: review.SeverityLow, FeedbackToken: "abcdefg234567"})
	}
	m := newMessage(r)
	if len(m.Blocks) > 50 || len([]rune(m.Blocks[0].Text.Text)) > 150 {
		t.Errorf("%d blocks, a header of %q", len(m.Blocks), m.Blocks[0].Text.Text)
	}
	for _, b := range m.Blocks {
		if len([]rune(textOf(b).Text)) > 3000 {
			t.Errorf("a section of %d characters", len([]rune(b.Text.Text)))
		}
	}
	if last := m.Blocks[len(m.Blocks)-1]; last.Elements[0].Text != "52 more in the mail" {
		t.Errorf("ends in %+v", last)
	}
}

func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		class failure.Class
		wait  time.Duration
	}{
		"too fast": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}, failure.RateLimited, 7 * time.Second},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, failure.ServerBusy, 3 * time.Second},
		"a server that failed":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, failure.DeliveryAmbiguous, 0},
		"a revoked webhook":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, failure.AuthDenied, 0},
		"a webhook that is gone": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no_service "+token, 404) }, failure.ConfigInvalid, 0},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, failure.ConfigInvalid, 0},
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, failure.DeliveryAmbiguous, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := hookTo(t, tt.serve)
			_, err := h.Send(t.Context(), report(), key, time.Now())
			if failure.ClassOf(err) != tt.class {
				t.Fatalf("error %v, want %s", err, tt.class)
			}
			if e, ok := errors.AsType[*failure.Error](err); !ok || e.RetryAfter != tt.wait {
				t.Errorf("waits %+v, want %s", err, tt.wait)
			}
			if strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error tells where to: %v", err)
			}
		})
	}
}

func TestWhatWasNeverSentIsNotInDoubt(t *testing.T) {
	t.Parallel()
	h, err := New(slog.New(slog.DiscardHandler), Config{URL: secret.New("http://127.0.0.1:1/" + token)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Send(t.Context(), report(), key, time.Now())
	if failure.ClassOf(err) != failure.NetworkUnreachable || strings.Contains(err.Error(), token) {
		t.Errorf("nobody listens: %v", err)
	}
	reached := false
	h, _ = hookTo(t, func(http.ResponseWriter, *http.Request) { reached = true })
	if _, err = h.Send(t.Context(), report(), key, time.Now().Add(-time.Hour)); failure.ClassOf(err) != failure.NetworkTimeout || reached {
		t.Errorf("an attempt of an hour ago: %v, posted %t", err, reached)
	}
}

func TestMessageInDoubt(t *testing.T) {
	t.Parallel()
	for choice, want := range map[OnAmbiguous]review.EvidenceState{
		"": review.EvidenceUnknown, AmbiguousHold: review.EvidenceUnknown, AmbiguousResend: review.EvidenceAbsent,
	} {
		h, err := New(slog.New(slog.DiscardHandler), Config{URL: secret.New("https://hooks.example.com/x"), OnAmbiguous: choice})
		if err != nil {
			t.Fatal(err)
		}
		evidence, err := h.Lookup(t.Context(), key, time.Now())
		if err != nil || evidence.State != want || !evidence.AskAgain.IsZero() || evidence.Observed {
			t.Errorf("%q: %+v, %v", choice, evidence, err)
		}
	}
}

func TestConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no URL":          {},
		"no http address": {URL: secret.New("hooks.example.com/" + token)},
		"another choice":  {URL: secret.New("https://hooks.example.com/x"), OnAmbiguous: "drop"},
	} {
		_, err := New(slog.New(slog.DiscardHandler), cfg)
		if failure.ClassOf(err) != failure.ConfigInvalid || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A sign of life is asked for without posting anything, and what takes POST alone
// counts as alive whatever it says to HEAD.
func TestPing(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]failure.Class{
		200: "", 403: "", 404: "", 405: "", 501: "",
		429: failure.UpstreamUnavailable, 502: failure.UpstreamUnavailable, 503: failure.UpstreamUnavailable, 504: failure.UpstreamUnavailable,
	} {
		var methods []string
		h, _ := hookTo(t, func(w http.ResponseWriter, r *http.Request) {
			methods = append(methods, r.Method)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		err := h.Ping(t.Context())
		if err == nil && want != "" || err != nil && failure.ClassOf(err) != want || len(methods) != 1 || methods[0] != http.MethodHead {
			t.Errorf("%d: %v after %q, want %q", status, err, methods, want)
		}
		if e, ok := errors.AsType[*failure.Error](err); ok && (e.RetryAfter != 7*time.Second || strings.Contains(err.Error(), token)) {
			t.Errorf("%d: %v, again after %s", status, err, e.RetryAfter)
		}
	}
}

func TestPingOfNobody(t *testing.T) {
	t.Parallel()
	h, err := New(slog.New(slog.DiscardHandler), Config{URL: secret.New("http://127.0.0.1:1/services/" + token)})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Ping(t.Context()); failure.ClassOf(err) != failure.NetworkUnreachable || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
}
