package llm

import (
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

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// newEndpoint returns an endpoint served by serve and guarded by g.
func newEndpoint(t *testing.T, g guard, serve http.Handler, change ...func(*EndpointConfig)) *Endpoint {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	cfg := config.Default[EndpointConfig]()
	cfg.BaseURL, cfg.APIKey = server.URL+"/v1/", secret.New("key-new")
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

// A call has the query of the base URL beside its own. Google has its own error format, and
// refuses a key with status 400.
func TestCallIsClassified(t *testing.T) {
	t.Parallel()
	for query, tt := range map[string]struct {
		body string
		want failure.Class
	}{
		"?a=1": {`{"error":{"code":400,"message":"` + leak + `","details":[{"reason":"API_KEY_INVALID"}]}}`, failure.AuthDenied},
		"?b=1": {"", failure.NetworkTimeout},
	} {
		e := newEndpoint(t, &recordingGuard{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != query[1:]+"&api-version=1" {
				t.Errorf("query is %s", r.URL.RawQuery)
			}
			if tt.body == "" {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, tt.body)
		}), func(c *EndpointConfig) { c.BaseURL += "?api-version=1" })
		if tt.want == failure.NetworkTimeout {
			e.cfg.Timeout = 200 * time.Millisecond
		}
		_, err := e.Call(t.Context(), http.MethodPost, "/models/x:generateContent"+query, struct{}{}, &struct{}{})
		if failure.ClassOf(err) != tt.want || strings.Contains(err.Error(), leak) {
			t.Errorf("got %v of class %s, want %s", err, failure.ClassOf(err), tt.want)
		}
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
