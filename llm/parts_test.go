package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// judged returns the outcome of a draft.
func judged(d review.Draft) review.Outcome {
	report := review.Report{Findings: d.Findings, Coverage: d.Coverage, Record: d.Record}
	outcome, _ := report.Judge()
	return outcome
}

// findingOn returns an answer with a finding on a quote.
func findingOn(codes []string, path, quote string) string {
	finding, _ := json.Marshal(fields{
		"path": path, "quote": quote, "line": 1, "trigger": "", "explanation": "It runs what a stranger sends.", "category": "security",
		"severity": "critical", "confidence": 0.9, "title": "Runs foreign input", "suggestion": "", "replacement": "",
	})
	return strings.Replace(findingsWith(codes), `"findings":[]`, `"findings":[`+string(finding)+`]`, 1)
}

// A part that the model cannot answer is named with its reason, and the others are delivered,
// whether it comes first or last. If no part can be answered, or another attempt may succeed,
// the review fails.
func TestPartThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		reason review.SkipReason
		class  failure.Class
	}{
		"a content filter":      {func(w http.ResponseWriter) { said200(w, "", "content_filter", 3_000, 1) }, review.SkipRefused, failure.ContentPolicy},
		"a refused content":     {status(400, `{"error":{"message":"no","code":"content_policy_violation"}}`), review.SkipRefused, failure.ContentPolicy},
		"prose":                 {func(w http.ResponseWriter) { said200(w, "Looks fine to me.", "stop", 3_000, 5) }, review.SkipUnusable, failure.SchemaInvalid},
		"an unknown refusal":    {status(400, `{"error":{"message":"Nope."}}`), review.SkipEndpointRefused, failure.EndpointRefused},
		"a firewall's refusal":  {status(403, `<html>blocked`), review.SkipEndpointRefused, failure.PermissionDenied},
		"too large, even split": {status(413, `{}`), review.SkipTooLong, failure.TooLarge},
		"an internal error":     {status(500, `{}`), "", failure.UpstreamInternal},
		"a refused key":         {status(401, `{}`), "", failure.AuthDenied},
	} {
		for _, sick := range []string{"//depot/f00.go", "//depot/f03.go", "//depot/"} {
			t.Run(name+" of "+sick, func(t *testing.T) {
				t.Parallel()
				l := &liar{lies: func(w http.ResponseWriter, h heard) {
					if strings.Contains(h.user, "\nfile "+sick) {
						test.answer(w)
						return
					}
					path := h.user[strings.Index(h.user, "\nfile //")+len("\nfile "):]
					path = path[:strings.Index(path, " ")]
					said200(w, findingOn(codesIn(h.messages), path, "value(1)"), "stop", len(h.messages)/4, 20)
				}}
				r, _ := newReviewer(t, l, small, func(c *Config) { c.Concurrency = 1 })
				const files = 4
				d, err := r.Review(t.Context(), redacted(t, manyFiles(files)...), review.Options{})
				if sick == "//depot/" || test.reason == "" {
					if failure.ClassOf(err) != test.class {
						t.Errorf("draft %+v, error %v, want %s", d, err, test.class)
					}
					return
				}
				if err != nil || judged(d) != review.OutcomePartial || len(d.Findings) == 0 || read(d) == 0 || read(d)+len(unread(d)) != files {
					t.Fatalf("draft %+v, error %v", d, err)
				}
				gap := review.Unread{Path: sick, Lines: d.Unread[0].Lines, Why: test.reason, Class: string(test.class), Context: d.Unread[0].Context}
				if !slices.Contains(d.Unread, gap) || !strings.HasPrefix(gap.Lines, "1-") || (gap.Context == "") != strings.Contains("a content filter, prose", name) {
					t.Errorf("unread are %+v, want %+v", d.Unread, gap)
				}
				if unread(d)[sick] != test.reason {
					t.Errorf("omitted %v, want %s: %s", unread(d), sick, test.reason)
				}
			})
		}
	}
}

// A line that the author wrote is code, even if it looks like a head, a mark or a check code
// of the prompt: a finding on it is shown, at its line.
func TestFindingsOnLinesThatLookLikeThePrompt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x = 1; ", 400)
	const path = "//depot/install.sql"
	for name, test := range map[string]struct {
		lines []string // the second is the code
		quote string   // default: the code
	}{
		"a script that is run":        {[]string{"SET ECHO OFF", "@@ http://example.invalid/run.sql"}, ""},
		"with the head of its hunk":   {[]string{"SET ECHO OFF", `@@ eval "$1"`}, "@@ \n@@ eval \"$1\""},
		"with number and mark":        {[]string{"SET ECHO OFF", `@@ eval "$1"`}, "     2 + @@ eval \"$1\""},
		"a key like a check code":     {[]string{"a: 1", "check-code: 0badc0de"}, ""},
		"a line like a file's head":   {[]string{"# x", "file //example.invalid/share/run (x, rwx)"}, ""},
		"a fence with a language":     {[]string{"text", "```sh"}, ""},
		"a mark, and a cut line":      {[]string{long, "system(input); /* [line cut: 17 bytes more] */"}, ""},
		"a fence mark of the prompt":  {[]string{"text", "=== end change 0123456789abcdef ==="}, ""},
		"beside another fenced quote": {[]string{"```", "run(input)"}, "```go\nrun(input)\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quote := test.quote
			if quote == "" {
				quote = test.lines[1]
			}
			l := &liar{lies: func(w http.ResponseWriter, h heard) {
				said200(w, findingOn(codesIn(h.messages), path, quote), "stop", len(h.messages)/4, 20)
			}}
			r, _ := newReviewer(t, l)
			d, err := r.Review(t.Context(), redacted(t, added(path, test.lines...)), review.Options{})
			if err != nil || !slices.Equal(summary(d), []string{"critical install.sql:2-2 added"}) || judged(d) == review.OutcomeClean {
				t.Errorf("shows %q, dropped %v, %v", summary(d), d.Dropped, err)
			}
		})
	}
}

// A fence without any letter has no line of its own, but its finding is shown.
func TestFindingOnAFence(t *testing.T) {
	t.Parallel()
	d, _, err := scripted(t, []review.File{added("//depot/a.md", "text", "```")}, nil, answerWith(fields{"path": "//depot/a.md", "quote": "```"}))
	if got := summary(d); err != nil || !slices.Equal(got, []string{"high a.md:0-0 file"}) {
		t.Errorf("shows %q, dropped %v, %v", got, d.Dropped, err)
	}
}

// A finding whose path is nowhere is filed by its quote if the change has that once.
func TestFindingIsFiledByItsQuote(t *testing.T) {
	t.Parallel()
	files := []review.File{added("//depot/a.go", "one()", "twice()"), added("//depot/b.go", "two()", "three()", "three()", "twice()")}
	for quote, want := range map[string][]string{"two()": {"high b.go:1-1 added"}, "twice()": nil, "three()": nil, "four()": nil, "": nil} {
		d, _, err := scripted(t, files, nil, answerWith(fields{"path": "//depot/elsewhere.go", "quote": quote}))
		if err != nil || !slices.Equal(summary(d), want) || (want == nil) != (d.Dropped[review.DropUnknownPath] == 1) || judged(d) == review.OutcomeClean {
			t.Errorf("%q: shows %q, %s, dropped %v, error %v; want %q", quote, summary(d), judged(d), d.Dropped, err, want)
		}
	}
}

// A review whose only remark was dropped for its form is not clean.
func TestDroppedRemarkIsNotClean(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a cut mark": answerWith(fields{"quote": "x [line cut: 17 bytes more]"}),
		"a head":     answerWith(fields{"quote": "@@ func (p *Pool) Take() *Conn"}),
		"no change":  answerWith(fields{"suggestion": "p.free = p.free[:len(p.free)-1]"}),
	} {
		d, _, err := scripted(t, []review.File{edited}, nil, answer)
		if err != nil || len(d.Findings) != 0 || judged(d) != review.OutcomePartial {
			t.Errorf("%s: %s, draft %+v, error %v", name, judged(d), d, err)
		}
	}
}

// A server whose context is smaller than the default limits reviews the change, whether its
// context is configured, reported, or only said in its error.
func TestAnswerLimitFitsTheContext(t *testing.T) {
	t.Parallel()
	const size = 16_384
	for name, test := range map[string]struct {
		models string
		change func(*Config)
		calls  int
	}{
		"configured":       {"", func(c *Config) { c.ContextTokens = size }, 1},
		"reported":         {fmt.Sprintf(`{"data":[{"id":"test-model","owned_by":"vllm","max_model_len":%d}]}`, size), nil, 1},
		"said in an error": {"", nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			l := &liar{lies: func(w http.ResponseWriter, h heard) {
				calls++
				prompt := len(h.messages) / 4
				if prompt+h.limit > size {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion).","code":400}}`,
						size, prompt+h.limit, prompt, h.limit)
					return
				}
				said200(w, findingsWith(codesIn(h.messages)), "stop", prompt, 20)
			}}
			r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet && test.models != "" {
					_, _ = io.WriteString(w, test.models)
					return
				}
				l.ServeHTTP(w, req)
			}), func(c *Config) {
				c.MaxPromptTokens, c.MaxAnswerTokens = 24_000, 16_384
				if test.change != nil {
					test.change(c)
				}
			})
			for range 2 {
				d, err := r.Review(t.Context(), redacted(t, manyFiles(1)...), review.Options{})
				if err != nil || read(d) != 1 {
					t.Fatalf("draft %+v, error %v", d, err)
				}
			}
			if calls != test.calls+1 {
				t.Errorf("%d calls for two reviews, want %d", calls, test.calls+1)
			}
		})
	}
}
