package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
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

func TestUnusableAnswerIsRepairedOnce(t *testing.T) {
	t.Parallel()
	d, r, err := scripted(t, []review.File{edited}, nil, "It looks fine.", answerWith(fields{}))
	if err != nil || len(d.Findings) != 1 || d.Usage.Calls != 2 || r.calls() != 2 {
		t.Errorf("draft %+v, error %v", d, err)
	}
	_, r, err = scripted(t, []review.File{edited}, nil, "It looks fine.", "It still does.", answerWith(fields{}))
	if failure.ClassOf(err) != failure.SchemaInvalid || r.calls() != 2 {
		t.Errorf("error %v after %d calls, want %s after 2", err, r.calls(), failure.SchemaInvalid)
	}
}

// bodies records the request bodies.
type bodies struct {
	mu   sync.Mutex
	all  []string
	next http.Handler
}

func (b *bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPost {
		b.mu.Lock()
		b.all = append(b.all, string(body))
		b.mu.Unlock()
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	b.next.ServeHTTP(w, r)
}

// messages returns the messages of request n.
func (b *bodies) messages(t *testing.T, n int) []string {
	t.Helper()
	var req request
	if err := json.Unmarshal([]byte(b.all[n]), &req); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range req.Messages {
		out = append(out, m.Content)
	}
	return out
}

// A repair has the reason and another last code. Up to the task it is the same, so that it can
// be cached.
func TestFailedRequestIsNotRepeatedUnchanged(t *testing.T) {
	t.Parallel()
	r := withFaults(t, nil, llmsim.Fault{Kind: llmsim.NotJSON})
	if _, err := r.Review(t.Context(), redacted(t, edited), newAttempts().options()); failure.ClassOf(err) != failure.SchemaInvalid || len(r.sent.all) != 2 {
		t.Fatalf("got %v after %d requests", err, len(r.sent.all))
	}
	first, repair := r.sent.messages(t, 0)[1], r.sent.messages(t, 1)[1]
	same, task, _ := strings.Cut(repair, "Task: ")
	if !strings.HasPrefix(first, same) || !strings.Contains(task, "\nYour answer to this could not be used: ") || strings.HasSuffix(first, repair[len(repair)-9:]) {
		t.Errorf("the repair ends in %q", task)
	}
}

func TestFallbackModelAnswers(t *testing.T) {
	t.Parallel()
	for kind, why := range map[llmsim.FaultKind]failure.Class{
		llmsim.ModelNotFound: failure.ConfigInvalid,
		llmsim.Refusal:       failure.ContentPolicy,
		llmsim.ContentFilter: failure.ContentPolicy,
		llmsim.ContentPolicy: failure.ContentPolicy,
		llmsim.NotJSON:       failure.SchemaInvalid,
		llmsim.Unavailable:   failure.UpstreamUnavailable,
		llmsim.RateLimit:     failure.RateLimited,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := withFaults(t, func(c *Config) { c.Fallbacks = []string{"second", "third"} },
				llmsim.Fault{Kind: kind, Asked: "test-model"}, llmsim.Fault{Kind: llmsim.Unavailable, Asked: "second"})
			shared := newAttempts()
			d, err := r.Review(t.Context(), redacted(t, buggy), shared.options())
			want := review.Switch{From: "test-model", To: "third", Why: string(why), Calls: 1}
			if err != nil || len(d.Findings) != 2 || !slices.Equal(d.Switches, []review.Switch{want}) {
				t.Fatalf("draft %+v, error %v", d, err)
			}
			before := r.calls()
			again, err := r.Review(t.Context(), redacted(t, buggy), shared.options())
			if err != nil || r.calls() != before || !slices.Equal(again.Switches, d.Switches) {
				t.Errorf("the next attempt made %d calls, switches %+v, error %v", r.calls()-before, again.Switches, err)
			}
		})
	}
}

func TestErrorOfAllModelsIsTheRetryableOne(t *testing.T) {
	t.Parallel()
	r := withFaults(t, func(c *Config) { c.Fallbacks = []string{"second"} },
		llmsim.Fault{Kind: llmsim.Refusal, Asked: "test-model"}, llmsim.Fault{Kind: llmsim.Unavailable, Asked: "second"})
	if _, err := r.review(t, buggy); failure.ClassOf(err) != failure.UpstreamUnavailable {
		t.Errorf("got %v: want the error that another attempt may cure", err)
	}
}

func TestRefusedKeyIsNotTriedOnFallbacks(t *testing.T) {
	t.Parallel()
	r := withFaults(t, func(c *Config) { c.Fallbacks = []string{"second"} }, llmsim.Fault{Kind: llmsim.InvalidKey})
	if _, err := r.review(t, buggy); failure.ClassOf(err) != failure.AuthDenied || r.calls() != 1 {
		t.Errorf("got %v after %d calls", err, r.calls())
	}
}

// The tokens of failed attempts count against the budget of the review.
func TestReviewBudgetCountsAllAttempts(t *testing.T) {
	t.Parallel()
	r := withFaults(t, func(c *Config) { c.MaxTokensPerReview = 50_000 })
	shared := newAttempts()
	shared.spent = 49_000
	d, err := r.Review(t.Context(), redacted(t, edited), shared.options())
	want := map[string]review.SkipReason{"//depot/main/pool.go": review.SkipOverBudget}
	if err != nil || !maps.Equal(unread(d), want) || r.calls() != 0 {
		t.Errorf("draft %+v, error %v, %d calls", d, err, r.calls())
	}
}

func TestDayBudget(t *testing.T) {
	t.Parallel()
	r := withFaults(t, func(c *Config) { c.Concurrency, c.MaxPromptTokens, c.MaxAnswerTokens = 1, minPromptTokens, 1_000 })
	shared := newAttempts()
	shared.day = 13_000
	d, err := r.Review(t.Context(), redacted(t, manyFiles(6)...), shared.options())
	if err != nil || read(d) == 0 || len(unread(d)) == 0 || read(d)+len(unread(d)) != 6 || shared.day < 0 {
		t.Fatalf("draft %+v, error %v, %d tokens left", d, err, shared.day)
	}
	for path, why := range unread(d) {
		if why != review.SkipOverDay {
			t.Errorf("%s was not read: %s", path, why)
		}
	}
	shared.day = 0
	before := r.calls()
	d, err = r.Review(t.Context(), redacted(t, edited), shared.options())
	if err != nil || read(d) != 0 || r.calls() != before {
		t.Errorf("a day without tokens: draft %+v, error %v", d, err)
	}
	report := review.Report{Coverage: d.Coverage}
	if outcome, why := report.Judge(); outcome != review.OutcomeNotReviewed || !strings.Contains(why, string(review.SkipOverDay)) {
		t.Errorf("judged %s: %s", outcome, why)
	}
}

// A part that an earlier attempt had to split has no answer of its own, but its smaller parts
// have: a day without tokens does not hide them.
func TestDayBudgetKeepsSplitParts(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if req.Method == http.MethodPost && len(body) > 22_000 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, req)
	}), func(c *Config) { c.Concurrency = 1 })
	shared := newAttempts()
	c := redacted(t, manyFiles(4)...)
	first, err := r.Review(t.Context(), c, shared.options())
	if err != nil || read(first) != 4 || len(first.Proofs) < 4 {
		t.Fatalf("draft %+v, error %v", first, err)
	}
	shared.day = 0
	before := sim.Stats().Calls
	d, err := r.Review(t.Context(), c, shared.options())
	if err != nil || read(d) != 4 || len(d.Proofs) != len(first.Proofs) || sim.Stats().Calls != before {
		t.Errorf("retry: draft %+v, error %v", d, err)
	}
}

// An outage does not use up the budget of the next attempt.
func TestFailedCallsAreSettled(t *testing.T) {
	t.Parallel()
	for kind, spends := range map[llmsim.FaultKind]bool{
		llmsim.Unavailable: false, llmsim.RateLimit: false, llmsim.Drop: false, llmsim.InvalidKey: false, llmsim.Hang: true,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := withFaults(t, func(c *Config) {
				if kind == llmsim.Hang {
					c.Timeout = 200 * time.Millisecond
				}
			}, llmsim.Fault{Kind: kind})
			shared := newAttempts()
			if _, err := r.Review(t.Context(), redacted(t, edited), shared.options()); err == nil {
				t.Fatal("no error")
			}
			if shared.spent > 0 != spends || shared.spent >= r.cfg.MaxAnswerTokens {
				t.Errorf("%d tokens count as used", shared.spent)
			}
		})
	}
}

// An unusable answer is stored for people, redacted, and the error names it.
func TestUnusableAnswerIsStored(t *testing.T) {
	t.Parallel()
	key := "AK" + "IA" + "6YPUJNNVRAD7FMJM"
	r := withFaults(t, nil, llmsim.Fault{Kind: llmsim.Scripted, Content: "The key " + key + " looks fine."})
	var stored []string
	_, err := r.Review(t.Context(), redacted(t, edited), review.Options{Unusable: func(_ context.Context, answer string) (review.ArtifactRef, error) {
		stored = append(stored, answer)
		return review.ArtifactRef("report:" + strconv.Itoa(len(stored))), nil
	}})
	if len(stored) != 2 || !strings.HasPrefix(stored[0], "The key [REDACTED") || failure.ClassOf(err) != failure.SchemaInvalid || !strings.Contains(err.Error(), "criticizer artifact show report:2") {
		t.Errorf("stored %q, error %v", stored, err)
	}
}
