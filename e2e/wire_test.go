package e2e

// The wire tests run our model clients against an independent implementation of the
// APIs, @copilotkit/aimock, because llmsim could share an error with the clients. aimock
// has no partial results, failed lines or rejected batches; llmsim tests those.

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

const apiKey = "key-of-the-wire-check"

func mockAnswer(to, content string) mockFixture {
	return mockFixture{map[string]string{"userMessage": to}, map[string]string{"content": content}}
}

func wirePipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	p, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWireReviewer(t *testing.T) {
	t.Parallel()
	url := proveReading(t, startMock(t, apiKey, mockAnswer("=== begin change", `{"codes":[CODES],"findings":[{"path":"//depot/a.go","severity":"high","category":"correctness",`+
		`"confidence":0.9,"title":"Error is thrown away","explanation":"A failure goes unnoticed.","suggestion":"","quote":"_ = f()","line":1}]}`)))
	p := wirePipeline(t)
	change, err := p.Change(review.Change{Number: 4711, User: "ann", Description: "Tidy up.", Files: []review.File{
		{DepotPath: "//depot/a.go", Action: review.ActionEdit, Type: "text", Diff: "@@ -1 +1 @@\n-f()\n+_ = f()\n"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := newReviewer(t, p, url, apiKey).Review(t.Context(), change, review.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(draft.Findings) != 1 || draft.Findings[0].Title != "Error is thrown away" || draft.FilesRead != 1 {
		t.Errorf("draft is %+v", draft)
	}
	if err := newReviewer(t, p, url, "another key").Ping(t.Context()); failure.ClassOf(err) != failure.AuthDenied {
		t.Errorf("with another key: got %v, want class %s", err, failure.AuthDenied)
	}
}

// proveReading returns the URL of a proxy to aimock, whose answers are fixed: it puts the
// check codes of a prompt in place of CODES.
func proveReading(t *testing.T, mock string) string {
	target, err := url.Parse(mock)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(resp *http.Response) error {
		codes, _ := resp.Request.Context().Value(codesKey{}).(string)
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		body = bytes.ReplaceAll(body, []byte("CODES"), []byte(codes))
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		resp.Header.Del("Content-Length")
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prompt, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var codes []string
		for _, m := range checkCode.FindAllSubmatch(prompt, -1) {
			codes = append(codes, `\"`+string(m[1])+`\"`)
		}
		r.Body = io.NopCloser(bytes.NewReader(prompt))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), codesKey{}, strings.Join(codes, ","))))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type codesKey struct{}

var checkCode = regexp.MustCompile(`(?:"|\\n)check-code: ([0-9a-f]{8})`)

func newReviewer(t *testing.T, p *redaction.Pipeline, url, key string) *llm.Reviewer {
	t.Helper()
	r, err := llm.New(slog.New(slog.DiscardHandler), p, llm.Config{BaseURL: url + "/v1", Model: "gpt-5-mini", APIKey: secret.New(key)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newRewriter(t *testing.T, p *redaction.Pipeline, url, key string) *provider.Rewriter {
	t.Helper()
	r, err := provider.New(slog.New(slog.DiscardHandler), p, provider.Config{Providers: map[string]provider.Provider{
		"openai": {BaseURL: url + "/v1", APIKey: secret.New(key), Adapters: []rewrite.AdapterKind{rewrite.OpenAIChat, rewrite.OpenAIResponses}},
		"google": {BaseURL: url + "/v1beta", APIKey: secret.New(key), Adapters: []rewrite.AdapterKind{rewrite.GeminiGenerate}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decision(provider string, kind rewrite.AdapterKind) rewrite.RoutingDecision {
	return rewrite.RoutingDecision{
		Provider: provider, AdapterKind: kind, Model: "gpt-5-mini", PromptVersion: "v1", PolicyVersion: "p1", Mode: rewrite.Batch,
	}
}

func item(t *testing.T, p *redaction.Pipeline, id string) rewrite.Item {
	t.Helper()
	m, err := p.Message(id, "You never wash up!")
	if err != nil {
		t.Fatal(err)
	}
	return rewrite.Item{
		JobID: id, Surface: rewrite.DirectMessage, Strength: rewrite.LightTouch, Text: m.Text,
		Languages: rewrite.LanguagePair{From: "en", To: "en"}, Model: "gpt-5-mini", PromptVersion: "v1",
	}
}

func TestWireRewriterOfEveryAdapter(t *testing.T) {
	t.Parallel()
	p := wirePipeline(t)
	url := startMock(t, apiKey, mockAnswer("=== begin message", `{"rewrite":"I would like you to wash up more often."}`))
	for _, to := range []rewrite.RoutingDecision{
		decision("openai", rewrite.OpenAIChat), decision("openai", rewrite.OpenAIResponses), decision("google", rewrite.GeminiGenerate),
	} {
		t.Run(string(to.AdapterKind), func(t *testing.T) {
			t.Parallel()
			one := item(t, p, "job-1")
			got, err := newRewriter(t, p, url, apiKey).Rewrite(t.Context(), to, one)
			if err != nil || got.Text != "I would like you to wash up more often." {
				t.Fatalf("got %q, %v", got.Text, err)
			}
			_, err = newRewriter(t, p, url, "another key").Rewrite(t.Context(), to, one)
			if failure.ClassOf(err) != failure.AuthDenied {
				t.Errorf("with another key: got %v, want class %s", err, failure.AuthDenied)
			}
		})
	}
}

// A batch is uploaded, created, found, polled and read. aimock returns the same unusable
// mockAnswer for each line, so each line fails under its own custom_id.
func TestWireBatch(t *testing.T) {
	t.Parallel()
	p := wirePipeline(t)
	url := startMock(t, apiKey, mockAnswer("=== begin message", `{"rewrite":"x"}`))
	for _, kind := range []rewrite.AdapterKind{rewrite.OpenAIChat, rewrite.OpenAIResponses} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r, to, begun := newRewriter(t, p, url, apiKey), decision("openai", kind), time.Now().Add(-time.Minute)
			file, err := r.Upload(t.Context(), to, []rewrite.Item{item(t, p, "job-1"), item(t, p, "job-2")})
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Create(t.Context(), to, file, "key-"+string(kind))
			if err != nil || b.Status != rewrite.BatchValidating {
				t.Fatalf("batch is %+v, %v", b, err)
			}
			found, err := r.Find(t.Context(), to, "key-"+string(kind), file, begun)
			if err != nil || len(found) != 1 || found[0].ID != b.ID {
				t.Errorf("found %+v, %v", found, err)
			}
			b = await(t, r, to, b)
			unusable := map[string]failure.Class{}
			if err := r.Results(t.Context(), to, b.OutputFileID, func(l rewrite.Line) error {
				unusable[l.JobID] = failure.ClassOf(l.Err)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(unusable) != 2 || unusable["job-1"] != failure.SchemaInvalid || unusable["job-2"] != failure.SchemaInvalid {
				t.Errorf("lines are %v", unusable)
			}
			if err := r.Delete(t.Context(), to, file); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// await polls until the batch has a final status.
func await(t *testing.T, r *provider.Rewriter, to rewrite.RoutingDecision, b rewrite.ProviderBatch) rewrite.ProviderBatch {
	t.Helper()
	for range 10 {
		var err error
		if b, err = r.Poll(t.Context(), to, b.ID); err != nil {
			t.Fatal(err)
		}
		if b.Status.Final() {
			return b
		}
	}
	t.Fatalf("batch is still %s", b.Status)
	return b
}

func TestWireCancelAndMissingBatch(t *testing.T) {
	t.Parallel()
	p := wirePipeline(t)
	r := newRewriter(t, p, startMock(t, apiKey, mockAnswer("=== begin message", "x")), apiKey)
	to := decision("openai", rewrite.OpenAIChat)
	file, err := r.Upload(t.Context(), to, []rewrite.Item{item(t, p, "job-1")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Create(t.Context(), to, file, "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), to, b.ID); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if b := await(t, r, to, b); b.Status != rewrite.BatchCancelled {
		t.Errorf("batch is %+v", b)
	}
	if _, err := r.Poll(t.Context(), to, "batch_missing"); failure.ClassOf(err) != failure.NotFound {
		t.Errorf("poll of a missing batch: got %v, want class %s", err, failure.NotFound)
	}
	err = r.Results(t.Context(), to, "file-missing", func(rewrite.Line) error { return nil })
	if failure.ClassOf(err) != failure.NotFound {
		t.Errorf("results of a missing file: got %v, want class %s", err, failure.NotFound)
	}
}
