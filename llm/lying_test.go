package llm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// A heard is a request to a liar.
type heard struct {
	n        int    // number of the call, from 1
	messages string // all of them
	user     string // the last message
	limit    int    // of the answer, in the field of this call
	gone     <-chan struct{}
	field    string // of the limit
}

// reads returns the first and last bytes of a text.
func reads(text string, first, last int) string {
	if first+last >= len(text) {
		return text
	}
	return text[:first] + "\n" + text[len(text)-last:]
}

var checkLines = regexp.MustCompile(`(?m)^check-code: ([0-9a-f]{8})$`)

func codesIn(text string) []string {
	codes := []string{}
	for _, m := range checkLines.FindAllStringSubmatch(text, -1) {
		codes = append(codes, m[1])
	}
	return codes
}

// findingsWith returns an answer with codes and any other fields.
func findingsWith(codes []string, more ...string) string {
	quoted, _ := json.Marshal(codes)
	return `{"codes":` + string(quoted) + strings.Join(append(more, `,"findings":[]}`), "")
}

// said200 answers with a completion. A usage of -1 is left out.
func said200(w http.ResponseWriter, content, finish string, prompt, answered int) {
	body := map[string]any{"model": "test-model", "choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": content}, "finish_reason": finish,
	}}}
	if prompt >= 0 {
		body["usage"] = map[string]any{"prompt_tokens": prompt, "completion_tokens": answered}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// window answers without findings, having read the first and last bytes of the prompt.
func window(first, last int) func(http.ResponseWriter, heard) {
	return func(w http.ResponseWriter, h heard) {
		read := reads(h.messages, first, last)
		said200(w, findingsWith(codesIn(read)), "stop", len(read)/4, 20)
	}
}

// stream answers with events, until the client leaves if more returns true for ever.
func stream(w http.ResponseWriter, event func(i int) string, more func(i int) bool, pause time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := 0; more(i); i++ {
		if _, err := io.WriteString(w, event(i)); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		<-time.After(pause)
	}
}

func forever(int) bool { return true }

func delta(content string) string {
	quoted, _ := json.Marshal(content)
	return `data: {"model":"test-model","choices":[{"delta":{"content":` + string(quoted) + "}}]}\n\n"
}

const windowBytes = 2_048 * 4

// liars are endpoints that answer otherwise than they should. None of them gets a clean
// review: it fails with the class, or files are left out for the reason.
var liars = []struct {
	name  string
	lies  func(w http.ResponseWriter, h heard)
	class failure.Class
	calls int // at most
}{
	{"cuts the front", window(0, windowBytes), failure.PromptTruncated, 4},
	{"cuts the end", window(windowBytes, 0), failure.PromptTruncated, 4},
	{"cuts the middle", window(windowBytes, windowBytes), failure.PromptTruncated, 4},
	{"cuts a little of the middle", func(w http.ResponseWriter, h heard) {
		half := (len(h.messages) - 4*maxCodeGap) / 2
		read := reads(h.messages, half, half)
		said200(w, findingsWith(codesIn(read)), "stop", len(h.messages)/4, 20)
	}, failure.PromptTruncated, 4},
	{"cuts the front and reports the usage of the whole", func(w http.ResponseWriter, h heard) {
		said200(w, findingsWith(codesIn(reads(h.messages, 0, windowBytes))), "stop", len(h.messages)/4, 20)
	}, failure.PromptTruncated, 4},
	{"drops the message with the change", func(w http.ResponseWriter, h heard) {
		said200(w, findingsWith(codesIn(strings.TrimSuffix(h.messages, h.user))), "stop", 1_444, 20)
	}, failure.PromptTruncated, 4},
	{"drops the change when it is asked to repair", func(w http.ResponseWriter, h heard) {
		if !strings.Contains(h.user, "could not be used") {
			said200(w, "It looks fine.", "stop", len(h.messages)/4, 20)
			return
		}
		said200(w, findingsWith(codesIn(reads(h.messages, 0, 400))), "stop", 1_444, 20)
	}, failure.PromptTruncated, 4},
	{"reads nothing, without usage", func(w http.ResponseWriter, _ heard) { said200(w, `{"findings":[]}`, "stop", -1, 0) }, failure.PromptTruncated, 4},
	{"invents codes", func(w http.ResponseWriter, h heard) {
		said200(w, findingsWith(slices.Repeat([]string{"0badcafe"}, len(codesIn(h.messages)))), "stop", len(h.messages)/4, 20)
	}, failure.PromptTruncated, 4},
	{"finds the codes without reading", func(w http.ResponseWriter, h heard) { said200(w, findingsWith(codesIn(h.messages)), "stop", 2_048, 20) }, failure.PromptTruncated, 4},
	{"lists the codes in another order", func(w http.ResponseWriter, h heard) {
		codes := codesIn(h.messages)
		slices.Reverse(codes)
		said200(w, findingsWith(codes), "stop", len(h.messages)/4, 20)
	}, failure.PromptTruncated, 4},
	{"lists more codes than there are", func(w http.ResponseWriter, h heard) {
		codes := codesIn(h.messages)
		said200(w, findingsWith(append(codes, codes...)), "stop", len(h.messages)/4, 20)
	}, failure.PromptTruncated, 4},
	{"answers another call", func() func(http.ResponseWriter, heard) {
		var mu sync.Mutex
		stale := findingsWith([]string{"00000000"})
		return func(w http.ResponseWriter, h heard) {
			mu.Lock()
			defer mu.Unlock()
			said200(w, stale, "stop", len(h.messages)/4, 20)
			stale = findingsWith(codesIn(h.messages))
		}
	}(), failure.PromptTruncated, 4},
	{"is another model", func(w http.ResponseWriter, h heard) {
		codes, _ := json.Marshal(findingsWith(codesIn(h.messages)))
		_, _ = fmt.Fprintf(w, `{"model":"tiny-0.5b","choices":[{"message":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d}}`, codes, len(h.messages)/4)
	}, failure.ConfigInvalid, 1},
	{"has a million findings", func(w http.ResponseWriter, h heard) {
		said200(w, strings.Replace(findingsWith(codesIn(h.messages)), "[]}", "["+strings.Repeat("{},", 1_000_000)+"{}]}", 1), "stop", len(h.messages)/4, 20)
	}, failure.SchemaInvalid, 2},
	{"has findings without end", func(w http.ResponseWriter, h heard) {
		begin, _ := json.Marshal(strings.TrimSuffix(findingsWith(codesIn(h.messages)), "]}"))
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":`+strings.TrimSuffix(string(begin), `"`))
		for chunk := strings.Repeat("{},", 1<<16); ; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}, failure.SchemaInvalid, 1},
	{"streams findings without end", func(w http.ResponseWriter, h heard) {
		stream(w, func(i int) string {
			if i == 0 {
				return delta(strings.TrimSuffix(findingsWith(codesIn(h.messages)), "]}"))
			}
			return delta(`{"path":"`)
		}, forever, 0)
	}, failure.TooLarge, 3},
	{"streams empty parts without end", func(w http.ResponseWriter, _ heard) { stream(w, func(int) string { return delta("") }, forever, 0) }, failure.TooLarge, 2},
	{"streams comments for ever", func(w http.ResponseWriter, _ heard) {
		stream(w, func(int) string { return ": working\n\n" }, forever, 20*time.Millisecond)
	}, failure.NetworkTimeout, 1},
	{"drips", func(w http.ResponseWriter, h heard) {
		answer := delta(findingsWith(codesIn(h.messages)))
		stream(w, func(i int) string { return answer[i : i+1] }, func(i int) bool { return i < len(answer) }, 20*time.Millisecond)
	}, failure.NetworkTimeout, 1},
	{"stops within a stream and is silent", func(w http.ResponseWriter, h heard) {
		stream(w, func(i int) string {
			if i == 0 {
				return delta(findingsWith(codesIn(h.messages))[:10])
			}
			<-h.gone
			return ""
		}, func(i int) bool { return i < 2 }, 0)
	}, failure.NetworkTimeout, 1},
	{"ends a stream within an event", func(w http.ResponseWriter, h heard) {
		stream(w, func(int) string { return delta(findingsWith(codesIn(h.messages)))[:30] }, func(i int) bool { return i < 1 }, 0)
	}, failure.NetworkUnreachable, 1},
	{"is silent", func(_ http.ResponseWriter, h heard) { <-h.gone }, failure.NetworkTimeout, 1},
	{"sends invalid UTF-8", func(w http.ResponseWriter, _ heard) {
		_, _ = io.WriteString(w, "{\"choices\":[{\"message\":{\"content\":\"{\\\"codes\\\":[\\\"\xff\xfe\\\"],\\\"findings\\\":[]}\"}}]}")
	}, failure.PromptTruncated, 4},
	{"sends a gzip bomb", func(w http.ResponseWriter, _ heard) {
		w.Header().Set("Content-Encoding", "gzip")
		z, zeros := gzip.NewWriter(w), make([]byte, 1<<20)
		for range 64 {
			_, _ = z.Write(zeros)
		}
		_ = z.Close()
	}, failure.SchemaInvalid, 1},
	{"has an absurd usage and no codes", func(w http.ResponseWriter, _ heard) { said200(w, `{"findings":[]}`, "stop", 1<<50, 1<<50) }, failure.PromptTruncated, 4},
	{"has a negative usage", func(w http.ResponseWriter, h heard) {
		const usage = `{"prompt_tokens":%d,"completion_tokens":-900000,"output_tokens":-900000}`
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":"It looks fine."}}],"usage":`+usage+`}`, len(h.messages)/4)
	}, failure.SchemaInvalid, 2},
	{"is OK with HTML", func(w http.ResponseWriter, _ heard) { _, _ = io.WriteString(w, "<html>"+leak) }, failure.SchemaInvalid, 1},
	{"is OK with nothing", func(http.ResponseWriter, heard) {}, failure.SchemaInvalid, 1},
	{"only thinks", func(w http.ResponseWriter, h heard) { said200(w, "", "length", len(h.messages)/4, h.limit) }, failure.TooLarge, 2},
	{"thinks aloud until its limit", func(w http.ResponseWriter, h heard) {
		said200(w, "<think>"+strings.Repeat("hmm ", 100), "length", len(h.messages)/4, h.limit)
	}, failure.TooLarge, 2},
	{"ends for no reason, with nothing", func(w http.ResponseWriter, _ heard) {
		_, _ = io.WriteString(w, `{"model":"test-model","choices":[{"message":{"content":""},"finish_reason":null}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`)
	}, failure.SchemaInvalid, 2},
	{"calls a tool", func(w http.ResponseWriter, _ heard) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"approve"}}]},"finish_reason":"tool_calls"}]}`)
	}, failure.SchemaInvalid, 2},
	{"finds every prompt too long", func(w http.ResponseWriter, _ heard) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`)
	}, failure.TooLarge, 9},
}

// A liar serves lies and records what it was asked.
type liar struct {
	lies func(w http.ResponseWriter, h heard)
	mu   sync.Mutex
	all  []heard
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var req struct {
		Messages      []message
		MaxTokens     int `json:"max_tokens"`
		MaxCompletion int `json:"max_completion_tokens"`
	}
	_ = json.Unmarshal(body, &req)
	h := heard{limit: max(req.MaxTokens, req.MaxCompletion), field: "max_completion_tokens", gone: r.Context().Done()}
	if req.MaxTokens > 0 {
		h.field = "max_tokens"
	}
	for _, m := range req.Messages {
		h.messages += m.Content + "\n"
		h.user = m.Content + "\n"
	}
	l.mu.Lock()
	l.all = append(l.all, h)
	h.n = len(l.all)
	l.mu.Unlock()
	l.lies(w, h)
}

// bigChange has about 11,000 tokens in several files and one long hunk: one call.
func bigChange() []review.File {
	lines := make([]string, 700)
	for i := range lines {
		lines[i] = fmt.Sprintf("value[%d] = compute(%d)", i, i)
	}
	return append(manyFiles(1), added("//depot/long.go", lines...))
}

func TestLyingEndpoints(t *testing.T) {
	t.Parallel()
	c := redacted(t, bigChange()...)
	for _, test := range liars {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := &liar{lies: test.lies}
			r, logs := newReviewer(t, l, func(c *Config) {
				c.MaxAnswerTokens = 1_000
				c.Timeout = 2 * time.Minute
				if test.class == failure.NetworkTimeout {
					c.Timeout = 150 * time.Millisecond
				}
			})
			shared := newAttempts()
			d, err := r.Review(t.Context(), c, shared.options())
			report := review.Report{Findings: d.Findings, Coverage: d.Coverage}
			if outcome, _ := report.Judge(); err == nil && outcome == review.OutcomeClean {
				t.Fatal("the review is clean")
			}
			if got := failure.ClassOf(err); err == nil || got != test.class {
				t.Errorf("got %s: %v, want %s", got, err, test.class)
			}
			l.mu.Lock()
			calls := len(l.all)
			l.mu.Unlock()
			if calls > test.calls {
				t.Errorf("%d calls, want at most %d", calls, test.calls)
			}
			if most := test.calls * 30_000; shared.spent < 0 || shared.spent > most {
				t.Errorf("%d tokens count as used, want 0 to %d", shared.spent, most)
			}
			t.Logf("| %s | %s | %d | %d |", test.name, failure.ClassOf(err), calls, shared.spent)
			mustNotShow(t, "log", logs.String(), leak)
		})
	}
}

// An answer that ends before its finish reason is the network's fault, which another attempt may
// cure, whatever its encoding.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	for name, send := range map[string]func(w http.ResponseWriter, half []byte){
		"chunked": func(w http.ResponseWriter, half []byte) {
			_, _ = w.Write(half)
			w.(http.Flusher).Flush()
		},
		"chunked, with the mark of the end": func(w http.ResponseWriter, half []byte) {
			if event := bytes.LastIndex(half, []byte("data:")); event > 0 {
				half = append(half[:event], "data: [DONE]\n\n"...)
			}
			_, _ = w.Write(half)
			w.(http.Flusher).Flush()
		},
		"with its length": func(w http.ResponseWriter, half []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(2*len(half)))
			_, _ = w.Write(half)
		},
		"compressed": func(w http.ResponseWriter, half []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(half)
			_ = z.Close()
		},
	} {
		for _, whole := range []bool{false, true} {
			calls := 0
			r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					http.NotFound(w, req)
					return
				}
				calls++
				body, _ := io.ReadAll(req.Body)
				if whole {
					body = bytes.Replace(body, []byte(`"stream":true`), []byte(`"stream":false`), 1)
				}
				answer := httptest.NewRecorder()
				sim.ServeHTTP(answer, httptest.NewRequestWithContext(req.Context(), req.Method, req.URL.Path, bytes.NewReader(body)))
				sent := answer.Body.Bytes()
				if end := bytes.Index(sent, []byte(`,"finish_reason":"stop"`)); !whole {
					sent = sent[:end] // before the event of the reason
				}
				send(w, sent[:len(sent)*2/3])
			}))
			_, err := r.Review(t.Context(), redacted(t, buggy), review.Options{})
			if class := failure.ClassOf(err); class != failure.NetworkUnreachable || !class.Retryable() || calls != 1 {
				t.Errorf("%s, whole %t: %v after %d calls", name, whole, err, calls)
			}
		}
	}
}

// The same endpoint without the lie: what the others fail is not the test's own doing.
func TestHonestEndpointIsClean(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]func(h heard) int{
		"reports its usage":  func(h heard) int { return len(h.messages) / 4 },
		"reports none":       func(heard) int { return -1 },
		"reports a wild one": func(heard) int { return 1 << 50 },
	} {
		l := &liar{lies: func(w http.ResponseWriter, h heard) {
			said200(w, findingsWith(codesIn(h.messages)), "stop", usage(h), 20)
		}}
		r, _ := newReviewer(t, l)
		d, err := r.Review(t.Context(), redacted(t, bigChange()...), review.Options{})
		if err != nil || read(d) != 2 || len(d.Proofs) != 1 || d.Proofs[0].Codes < 5 || (d.Proofs[0].PromptTokens > 0) != (name == "reports its usage") {
			t.Errorf("%s: draft %+v, error %v", name, d, err)
		}
	}
}

// Whole findings of a cut answer are kept, and the rest of the part is asked for in
// smaller parts; what stays cut is left out.
func TestCutAnswerKeepsItsFindings(t *testing.T) {
	t.Parallel()
	finding := strings.Replace(oneFinding[len(`{"findings":[`):len(oneFinding)-2], "//depot/a.go", "//depot/f00.go", 1)
	l := &liar{lies: func(w http.ResponseWriter, h heard) {
		said200(w, strings.TrimSuffix(findingsWith(codesIn(h.messages)), "]}")+finding+`,{"path":"//de`, "length", len(h.messages)/4, h.limit)
	}}
	r, _ := newReviewer(t, l)
	d, err := r.Review(t.Context(), redacted(t, manyFiles(1)...), review.Options{})
	want := map[string]review.SkipReason{"//depot/f00.go": review.SkipCutAnswer}
	if err != nil || places(d.Findings) != 1 || !maps.Equal(unread(d), want) || len(l.all) > 7 {
		t.Errorf("draft %+v, error %v, %d calls", d, err, len(l.all))
	}
}

// If the endpoint has not proven two parts in a row, no other one is sent. A file counts as
// read only if its part was proven.
func TestPartsThatAreGivenUpAreOmitted(t *testing.T) {
	t.Parallel()
	l := &liar{lies: func(w http.ResponseWriter, h heard) {
		codes := codesIn(h.messages)
		if h.n > 1 {
			codes[0] = "00000000"
		}
		said200(w, findingsWith(codes), "stop", len(h.messages)/4, 20)
	}}
	r, _ := newReviewer(t, l, small, func(c *Config) { c.Concurrency = 1 })
	d, err := r.Review(t.Context(), redacted(t, manyFiles(12)...), review.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if shown := strings.Count(l.all[0].user, "\nfile //"); read(d) != shown || len(unread(d)) != 12-shown || len(l.all) > 8 {
		t.Errorf("read %d files, omitted %d in %d calls; want %d read", read(d), len(unread(d)), len(l.all), shown)
	}
	for path, why := range unread(d) {
		if why != review.SkipUnproven {
			t.Errorf("%s was not read: %s", path, why)
		}
	}
}

// A secret in the text of a finding reaches neither the draft nor the cache of answers.
func TestFindingsAreRedactedBeforeTheyAreCached(t *testing.T) {
	t.Parallel()
	const key = "AKIA" + "Q3EGRJXWNAPLTD5K"
	l := &liar{lies: func(w http.ResponseWriter, h heard) {
		finding := strings.NewReplacer("//depot/a.go", "//depot/f00.go", `"explanation":"`, `"explanation":"`+key+" ").Replace(oneFinding[1:])
		said200(w, strings.Replace(findingsWith(codesIn(h.messages)), `"findings":[]}`, finding, 1), "stop", len(h.messages)/4, 20)
	}}
	r, _ := newReviewer(t, l)
	shared := newAttempts()
	d, err := r.Review(t.Context(), redacted(t, manyFiles(1)...), shared.options())
	if err != nil || len(d.Findings) != 1 || len(shared.answers) == 0 {
		t.Fatalf("draft %+v, error %v, %d answers are cached", d, err, len(shared.answers))
	}
	for _, answer := range shared.answers {
		mustNotShow(t, "cache", string(answer), key)
	}
	mustNotShow(t, "draft", fmt.Sprint(d), key)
}

// Thinking that used up the limit gets three times as much, once.
func TestThinkingGetsMoreRoom(t *testing.T) {
	t.Parallel()
	l := &liar{lies: func(w http.ResponseWriter, h heard) {
		if h.limit < 3_000 {
			said200(w, "", "length", len(h.messages)/4, h.limit)
			return
		}
		said200(w, findingsWith(codesIn(h.messages)), "stop", len(h.messages)/4, 2_500)
	}}
	r, _ := newReviewer(t, l, func(c *Config) { c.MaxAnswerTokens = 1_000 })
	d, err := r.Review(t.Context(), redacted(t, manyFiles(1)...), review.Options{})
	if err != nil || read(d) != 1 || len(l.all) != 2 || l.all[1].limit != 3_000 {
		t.Errorf("draft %+v, error %v, calls %d", d, err, len(l.all))
	}
}

// Codes stand between hunks, and at most a gap apart, also within a long hunk.
func TestCodesAreBetweenHunks(t *testing.T) {
	t.Parallel()
	var c chunk
	for _, f := range redacted(t, bigChange()...).Files {
		file, err := parseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c = append(c, section{file, file.hunks})
	}
	text, codes := c.withCodes("fence")
	if !slices.Equal(codesIn(text), codes) || len(codes) < 3 {
		t.Fatalf("%d codes, %q in the text", len(codes), codesIn(text))
	}
	parts := checkLines.Split(text, -1)
	for i, part := range parts {
		if n := countTokens(part); n > maxCodeGap {
			t.Errorf("%d tokens before code %d", n, i)
		}
		if i > 0 && !strings.HasPrefix(part, "\n@@ ") && !strings.HasPrefix(part, "\nfile ") {
			t.Errorf("after code %d there is no head: %q", i, part[:20])
		}
	}
	if other, _ := c.withCodes("another"); slices.Equal(codesIn(other), codes) || bytes.Equal([]byte(other), []byte(text)) {
		t.Error("the codes of another review are the same")
	}
}

// The heads of files and hunks are text between codes, too: in a change of many files with one
// line each, most of the text.
func TestHeadsCountTowardsTheGap(t *testing.T) {
	t.Parallel()
	var c chunk
	for i := range 600 {
		f := newFile(fmt.Sprintf("//depot/a/long/directory/of/the/tree/with/many/files/f%03d.go", i), "edit, text")
		if err := f.parse("@@ -1 +1 @@ func heading(of int, a hunk) (that is, long)\n+x\n"); err != nil {
			t.Fatal(err)
		}
		c = append(c, section{f, f.hunks})
	}
	text, codes := c.withCodes("fence")
	for i, part := range checkLines.Split(text, -1) {
		if n := countTokens(part); n > maxCodeGap {
			t.Errorf("%d tokens before code %d of %d", n, i, len(codes))
		}
	}
	if added := countTokens(text) - countTokens(uncoded(c)); added > codeTokens(c.tokens()) {
		t.Errorf("the codes add %d tokens", added)
	}
}

// An answer without codes is the model's fault if the endpoint counts the whole prompt.
func TestAnswerWithoutCodes(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]failure.Class{"reported": failure.SchemaInvalid, "cut": failure.PromptTruncated, "": failure.PromptTruncated} {
		l := &liar{lies: func(w http.ResponseWriter, h heard) {
			said200(w, `{"findings":[]}`, "stop", map[string]int{"reported": len(h.messages) / 4, "cut": 700, "": -1}[prompt], 20)
		}}
		r, _ := newReviewer(t, l)
		if _, err := r.Review(t.Context(), redacted(t, manyFiles(1)...), review.Options{}); failure.ClassOf(err) != want || len(l.all) < 2 {
			t.Errorf("usage %q: %v after %d calls, want %s", prompt, err, len(l.all), want)
		}
	}
}

// A count that fills the context proves nothing: what was longer was cut to it. The server
// reports the context only while the model is loaded.
func TestAnswerWithoutCodesFromFullContext(t *testing.T) {
	t.Parallel()
	const context = 8_192
	for counted, want := range map[int]failure.Class{context: failure.PromptTruncated, context - 1: failure.SchemaInvalid} {
		l := &liar{lies: func(w http.ResponseWriter, _ heard) { said200(w, `{"findings":[]}`, "stop", counted, 20) }}
		r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			l.mu.Lock()
			loaded := len(l.all) > 0
			l.mu.Unlock()
			switch {
			case req.URL.Path == "/v1/models":
				_, _ = io.WriteString(w, `{"data":[{"owned_by":"library"}]}`)
			case req.URL.Path == "/api/ps" && loaded:
				_, _ = fmt.Fprintf(w, `{"models":[{"context_length":%d}]}`, context)
			case req.URL.Path == "/api/ps":
				_, _ = io.WriteString(w, `{"models":[]}`)
			default:
				l.ServeHTTP(w, req)
			}
		}))
		change := redacted(t, added("//depot/a.go", slices.Repeat([]string{"call(one, two)"}, 900)...))
		if _, err := r.Review(t.Context(), change, review.Options{}); failure.ClassOf(err) != want || len(l.all) < 2 {
			t.Errorf("%d tokens counted: %v after %d calls, want %s", counted, err, len(l.all), want)
		}
	}
}
