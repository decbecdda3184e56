package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// newEndpoint returns an endpoint served by serve and guarded by g.
func newEndpoint(t *testing.T, g guard, serve http.Handler, change ...func(*EndpointConfig)) *Endpoint {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	cfg := EndpointConfig{BaseURL: server.URL + "/v1/", APIKey: secret.New("key-new")}
	for _, c := range change {
		c(&cfg)
	}
	e, err := NewEndpoint(slog.New(slog.DiscardHandler), g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lines yields n lines, followed by err if it is not nil.
func lines(n int, err error) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for range n {
			if !yield([]byte(`{"n":1}`), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

var purpose = map[string]string{"purpose": "batch"}

// An uploaded file can be downloaded, with either of two keys.
func TestUploadAndDownload(t *testing.T) {
	t.Parallel()
	for name, accepted := range map[string]string{"the new key": "key-new", "the old key": "key-old"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, &recordingGuard{}, llmsim.New(llmsim.Config{APIKey: secret.New(accepted)}), func(c *EndpointConfig) {
				c.APIKeyOld = secret.New("key-old")
			})
			body, err := e.Upload(t.Context(), "/files", "x.jsonl", purpose, lines(3, nil))
			if err != nil {
				t.Fatal(err)
			}
			_ = body.Close()
			content, err := e.Download(t.Context(), "/files/file-000001/content")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = content.Close() }()
			if got, err := io.ReadAll(content); err != nil || string(got) != strings.Repeat("{\"n\":1}\n", 3) {
				t.Errorf("read back %q, %v", got, err)
			}
		})
	}
}

// The guard checks every line before it is sent (security 9.5.5). After an aborted
// upload the endpoint has no file.
func TestAbortedUploadLeavesNoFile(t *testing.T) {
	t.Parallel()
	broken := failure.Errorf(failure.InputInvalid, "no such line")
	for name, tt := range map[string]struct {
		guard *recordingGuard
		lines iter.Seq2[[]byte, error]
		want  failure.Class
	}{
		"blocked":      {&recordingGuard{err: errors.New("holds a key")}, lines(3, nil), failure.RedactionBlocked},
		"source fails": {&recordingGuard{}, lines(3, broken), failure.InputInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, tt.guard, llmsim.New(llmsim.Config{}))
			if _, err := e.Upload(t.Context(), "/files", "x.jsonl", purpose, tt.lines); failure.ClassOf(err) != tt.want {
				t.Errorf("got %v of class %s, want %s", err, failure.ClassOf(err), tt.want)
			}
			if _, err := e.Download(t.Context(), "/files/file-000001/content"); failure.ClassOf(err) != failure.NotFound {
				t.Errorf("got %v, want no file", err)
			}
		})
	}
}

// Uploads and downloads are streamed.
func TestTransfersAreStreamed(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	seen := make(chan int64, 1)
	e := newEndpoint(t, &recordingGuard{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			for range size / 1024 {
				_, _ = w.Write(make([]byte, 1024))
			}
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		seen <- n
	}))
	e.guard = &discardingGuard{}
	line := bytes.Repeat([]byte("x"), 1<<20)
	body, err := e.Upload(t.Context(), "/files", "x.jsonl", purpose, func(yield func([]byte, error) bool) {
		for range size >> 20 {
			if !yield(line, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	if n := <-seen; n < size {
		t.Errorf("%d bytes arrived", n)
	}
	content, err := e.Download(t.Context(), "/files/x/content")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	if n, err := io.Copy(io.Discard, content); n != size || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// A discardingGuard records nothing.
type discardingGuard struct{ recordingGuard }

func (*discardingGuard) Check([]byte) error { return nil }

func TestBrokenTransfersAreClassified(t *testing.T) {
	t.Parallel()
	for path, tt := range map[string]struct {
		timeout time.Duration // 0: the default
		want    failure.Class
	}{
		"/cut":  {0, failure.NetworkUnreachable},
		"/hang": {200 * time.Millisecond, failure.NetworkTimeout},
	} {
		e := newEndpoint(t, &recordingGuard{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "a part")
			w.(http.Flusher).Flush()
			if r.URL.Path == "/v1/hang" {
				<-r.Context().Done()
			}
		}), func(c *EndpointConfig) { c.TransferTimeout = tt.timeout })
		content, err := e.Download(t.Context(), path)
		if err == nil {
			_, err = io.ReadAll(content)
			_ = content.Close()
		} // else the timeout expired before the head arrived
		if failure.ClassOf(err) != tt.want {
			t.Errorf("%s: got %v of class %s, want %s", path, err, failure.ClassOf(err), tt.want)
		}
	}
}

func TestTransferIsCanceledByItsContext(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, &recordingGuard{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Download(ctx, "/files/x/content"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// Google has its own error format, and refuses a key with status 400.
func TestPostClassifiesGoogleErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   failure.Class
	}{
		"wrong key":    {400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, failure.AuthDenied},
		"rate limit":   {429, `{"error":{"code":429,"message":"Resource has been exhausted.","status":"RESOURCE_EXHAUSTED"}}`, failure.RateLimited},
		"overloaded":   {503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, failure.UpstreamUnavailable},
		"no such name": {404, `{"error":{"code":404,"message":"models/x is not found.","status":"NOT_FOUND"}}`, failure.NotFound},
		"not JSON":     {502, `<html>`, failure.UpstreamUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, &recordingGuard{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			_, err := e.Call(t.Context(), http.MethodPost, "/models/x:generateContent", struct{}{}, &struct{}{})
			said, ok := errors.AsType[*failure.Error](err)
			if !ok || said.Class != tt.want || said.RetryAfter != 7*time.Second {
				t.Fatalf("got %v of class %s, want %s and its wait", err, failure.ClassOf(err), tt.want)
			}
			if strings.Contains(err.Error(), "exhausted") || strings.Contains(err.Error(), "overloaded.") || strings.Contains(err.Error(), "valid.") {
				t.Errorf("the error repeats the endpoint: %v", err)
			}
		})
	}
}

func TestEndpointNeedsGuardAndURL(t *testing.T) {
	t.Parallel()
	lg := slog.New(slog.DiscardHandler)
	if _, err := NewEndpoint(lg, nil, EndpointConfig{BaseURL: "http://127.0.0.1:1/v1"}); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("without a guard: %v", err)
	}
	if _, err := NewEndpoint(lg, &recordingGuard{}, EndpointConfig{}); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("without a URL: %v", err)
	}
}
