package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
)

// promptOf shows added lines of one file, as the client does.
func promptOf(path string, lines ...string) string {
	var b strings.Builder
	b.WriteString("Review it.\n\n=== begin change 00ff ===\ndescription\n| TODO in a description is no code\n")
	fmt.Fprintf(&b, "file %s (edit, text)\n@@ \n", path)
	for i, l := range lines {
		fmt.Fprintf(&b, "%6d + %s\n", i+1, l)
	}
	b.WriteString("=== end change 00ff ===\n")
	return b.String()
}

func TestExamplesOfRules(t *testing.T) {
	t.Parallel()
	for i, r := range rules {
		t.Run(fmt.Sprintf("%d %s", i, r.Title), func(t *testing.T) {
			t.Parallel()
			fixed := r.Fix == nil
			check := func(examples map[string][]string, want int) {
				for name, lines := range examples {
					path := "//depot/" + name
					found := review(promptOf(path, lines...))
					if len(found) != want {
						t.Errorf("%s: %q: %d findings, want %d: %+v", name, lines, len(found), want, found)
						continue
					}
					if want == 1 && (found[0].Title != r.Title || found[0].Path != path || found[0].Line != 1 || found[0].Quote != lines[0]) {
						t.Errorf("%s: %q: finding is %+v", name, lines, found[0])
					}
					fixed = fixed || want == 1 && found[0].Replacement != "" && found[0].Replacement != lines[0]
				}
			}
			if len(r.Hit) == 0 {
				t.Error("rule has no example")
			}
			check(r.Hit, 1)
			check(r.Miss, 0)
			if !fixed {
				t.Error("no example has a replacement")
			}
		})
	}
}

func TestReviewReportsOnlyAddedLines(t *testing.T) {
	t.Parallel()
	prompt := "=== begin change ab ===\n| TODO\nfile //depot/a.c (edit, text)\n@@ \n     1   // TODO old\n       - // TODO gone\n     2 + // TODO new\n=== end change ab ===\n     3 + // TODO outside\n"
	if got := review(prompt); len(got) != 1 || got[0].Line != 2 {
		t.Errorf("got %+v", got)
	}
	if got := review(promptOf("a.c", slices.Repeat([]string{"TODO"}, 5)...)); len(got) != maxPerRule {
		t.Errorf("got %d findings of one rule", len(got))
	}
}

// ask posts a chat request and returns status, headers and decoded body.
func ask(t *testing.T, s *Server, prompt string, header ...string) (int, http.Header, map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": prompt}}})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	var got map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	return w.Code, w.Header(), got
}

func TestFaultsApplyInOrder(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	s.Inject(Fault{Kind: Internal, Times: 2, Match: "b.c"}, Fault{Kind: RateLimit, Times: 1, RetryAfter: "7"})
	var got []int
	for _, path := range []string{"b.c", "a.c", "b.c", "b.c", "a.c"} {
		status, header, _ := ask(t, s, promptOf(path))
		got = append(got, status)
		if status == 429 && header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After is %q", header.Get("Retry-After"))
		}
	}
	if want := []int{500, 429, 500, 200, 200}; !slices.Equal(got, want) || s.Stats().ByFault[RateLimit] != 1 {
		t.Errorf("statuses %v, want %v; stats %+v", got, want, s.Stats())
	}
	s.Inject(Fault{Kind: Unavailable})
	for range 3 {
		if status, _, _ := ask(t, s, "x"); status != 503 {
			t.Errorf("fault without times: status %d", status)
		}
	}
	s.ClearFaults()
	if status, _, _ := ask(t, s, "x"); status != 200 {
		t.Errorf("after ClearFaults: status %d", status)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	s := New(Config{APIKey: secret.New("right")})
	for key, want := range map[string]int{"Bearer right": 200, "Bearer wrong": 401, "": 401} {
		if status, _, _ := ask(t, s, "x", "Authorization", key); status != want {
			t.Errorf("key %q: status %d, want %d", key, status, want)
		}
	}
	s = New(Config{ContextTokens: 100})
	if status, _, _ := ask(t, s, strings.Repeat("x", 300)); status != 200 {
		t.Errorf("prompt within the context: status %d", status)
	}
	status, _, got := ask(t, s, strings.Repeat("x", 500))
	if status != 400 || got["error"].(map[string]any)["code"] != "context_length_exceeded" {
		t.Errorf("prompt over the context: status %d, %v", status, got)
	}
	for _, body := range []string{"", "{", `{"model":"m"}`} {
		w := httptest.NewRecorder()
		New(Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
		if w.Code != 400 {
			t.Errorf("%q: status %d", body, w.Code)
		}
	}
}
