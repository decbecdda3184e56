package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A recordingGuard records the bodies and returns err.
type recordingGuard struct {
	redactor
	mu     sync.Mutex
	bodies [][]byte
	err    error
}

func (g *recordingGuard) Check(body []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bodies = append(g.bodies, bytes.Clone(body))
	return g.err
}

func (*recordingGuard) Verify(redaction.Change) error { return nil }

func newRecordingGuard(t *testing.T) *recordingGuard {
	t.Helper()
	return &recordingGuard{redactor: newPipeline(t)}
}

// The guard checks exactly the bytes that are sent (security 9.5.5).
func TestGuardSeesWhatIsSent(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	server := httptest.NewServer(llmsim.New(llmsim.Config{Record: &sent}))
	defer server.Close()
	g := newRecordingGuard(t)
	r := guardedBy(t, g, server.URL)
	c := redacted(t, added("//depot/a.go", "one"), added("//depot/b.go", strings.Repeat("word ", 300)))
	if _, err := r.Review(t.Context(), c, review.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(g.bodies) != 1 || sent.String() != string(g.bodies[0])+"\n" {
		t.Errorf("guard saw %d bodies, endpoint got %d bytes that are not the same", len(g.bodies), sent.Len())
	}
}

func TestGuardBlocks(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	server := httptest.NewServer(sim)
	defer server.Close()
	g := newRecordingGuard(t)
	g.err = errors.New("holds a key")
	r := guardedBy(t, g, server.URL)
	_, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", "one")), review.Options{})
	if failure.ClassOf(err) != failure.RedactionBlocked {
		t.Errorf("got %v, want it blocked (security 9.5.5)", err)
	}
	if n := sim.Stats().Calls; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	mustNotShow(t, "error", err.Error())
}

func guardedBy(t *testing.T, g redactor, url string) *Reviewer {
	t.Helper()
	cfg := config.Default[Config]()
	cfg.BaseURL, cfg.Model = url+"/v1", "m"
	r, err := New(slog.New(slog.DiscardHandler), g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBrokenConnectionsAreClassified(t *testing.T) {
	t.Parallel()
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"id":"` + leak))
	})
	notHTTP := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(conn, leak+"\r\n\r\n")
		_ = conn.Close()
	})
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for name, test := range map[string]struct {
		endpoint http.Handler
		url      string
		class    failure.Class
	}{
		"nobody listens":             {nil, "http://127.0.0.1:1", failure.NetworkUnreachable},
		"ends without an answer":     {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "", failure.NetworkUnreachable},
		"ends within the answer":     {cut, "", failure.NetworkUnreachable},
		"answers something else":     {notHTTP, "", failure.NetworkUnreachable},
		"does not answer":            {slow, "", failure.NetworkTimeout},
		"answers without end":        {http.HandlerFunc(endless), "", failure.SchemaInvalid},
		"sends the change elsewhere": {http.RedirectHandler("http://"+leak+".invalid/", http.StatusMultipleChoices), "", failure.ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, test.endpoint, func(c *Config) {
				if test.url != "" {
					c.BaseURL = test.url
				}
				if test.class == failure.NetworkTimeout {
					c.Timeout = 200 * time.Millisecond
				}
			})
			_, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", "one")), review.Options{})
			if failure.ClassOf(err) != test.class {
				t.Errorf("got %s: %v, want %s", failure.ClassOf(err), err, test.class)
			}
			if cutOff := strings.Contains(err.Error(), "is over 8388608 bytes"); cutOff != (name == "answers without end") {
				t.Errorf("the limit of an answer was applied: %t: %v", cutOff, err)
			}
			mustNotShow(t, "error", err.Error(), leak, "127.0.0.1")
		})
	}
}

// endless ends after 256 MiB, so that a client without a limit fails and leaves memory to
// others.
func endless(w http.ResponseWriter, _ *http.Request) {
	for range 256 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

func TestUntrustedCertificateIsAConfigurationError(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(respond(200, ""))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	_, err := guardedBy(t, newRecordingGuard(t), server.URL).Review(t.Context(), redacted(t, added("//depot/a.go", "one")), review.Options{})
	if failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("got %v", err)
	}
}

// A canceled review returns the error of its context.
func TestCanceledReview(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := newReviewer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	_, err := r.Review(ctx, redacted(t, added("//depot/a.go", "one")), review.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
