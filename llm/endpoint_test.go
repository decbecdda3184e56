package llm

import (
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
