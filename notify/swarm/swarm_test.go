package swarm

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain/plaintest"
)

const ticket = "TICKET0123456789"

var (
	keys, _ = evidence.New(secret.New("2020-01-01T00:00:00Z " + base64.StdEncoding.EncodeToString(make([]byte, 32))))
	key     = review.DeliveryKey{Changelist: 4711, Recipient: string(review.ChannelSwarm), Version: 1}
)

// A standIn implements the parts of the API that are used. If fault is set, it
// may answer a POST instead: before the change is made, or after it if late.
type standIn struct {
	mu       sync.Mutex
	reviews  []map[string]any
	comments []map[string]any
	topics   []string
	forms    []url.Values
	edits    []int // the IDs of edited comments
	runs     []testRun
	fault    func(w http.ResponseWriter) bool
	late     bool
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, password, ok := r.BasicAuth(); !ok || user != "bot" || password != ticket {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	changes := r.Method != http.MethodGet
	if changes && s.fault != nil && !s.late && s.fault(w) {
		return
	}
	answer := s.answer(r)
	if changes && s.fault != nil && s.late && s.fault(w) {
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *standIn) answer(r *http.Request) any {
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v9/reviews":
		return map[string]any{"reviews": s.reviews, "totalCount": len(s.reviews)}
	case "GET /api/v9/comments":
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		end := min(len(s.comments), after+2) // pages of two
		return map[string]any{"topic": r.URL.Query().Get("topic"), "comments": s.comments[min(after, end):end], "lastSeen": end}
	case "POST /api/v9/comments":
		_ = r.ParseForm()
		comment := map[string]any{"id": len(s.comments) + 1, "user": "bot", "body": r.PostForm.Get("body")}
		s.comments, s.topics, s.forms = append(s.comments, comment), append(s.topics, r.PostForm.Get("topic")), append(s.forms, r.PostForm)
		return map[string]any{"comment": comment}
	case "PATCH " + r.URL.Path:
		_ = r.ParseForm()
		id, _ := strconv.Atoi(path.Base(r.URL.Path))
		s.comments[id-1]["body"] = r.PostForm.Get("body")
		s.edits = append(s.edits, id)
		return map[string]any{"comment": s.comments[id-1]}
	case "GET /api/v11/reviews/12/testruns":
		return map[string]any{"error": nil, "data": map[string]any{"testruns": s.runs}}
	case "POST /api/v11/reviews/12/testruns":
		var run testRun
		_ = json.NewDecoder(r.Body).Decode(&run)
		s.runs = append(s.runs, run)
		return map[string]any{"error": nil, "data": map[string]any{"testruns": []testRun{run}}}
	}
	return map[string]any{"error": "no such route"}
}

// locked runs look while no request is handled.
func (s *standIn) locked(look func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look()
}

func newServer(t *testing.T, s *standIn) *Server {
	t.Helper()
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return New(slog.New(slog.DiscardHandler), Config{URL: listener.URL + "/", User: "bot", Ticket: secret.New(ticket), Test: "criticizer", FailSeverity: review.SeverityHigh, Keys: keys})
}

// reviewed returns a server with a review of two versions, and other comments.
func reviewed() *standIn {
	return &standIn{
		reviews:  []map[string]any{{"id": 12, "versions": []any{1, 2}}, {"id": 7, "versions": []any{1}}},
		comments: []map[string]any{{"id": 1, "body": "hello"}, {"id": 2, "body": "criticizer-key 00"}, {"id": 3, "body": "bye"}},
	}
}

func report(outcome review.Outcome) review.Report {
	r := review.Report{Changelist: 4711, Version: 1, Outcome: outcome, Coverage: review.Coverage{{Path: "//depot/a.go", Lines: []review.Lines{{First: 1, Last: 2, State: review.LinesShown}}}}, ReviewedAt: "2026-11-20T10:16:30Z"}
	if outcome == review.OutcomeFindings {
		r.Findings = []review.Finding{
			{
				Path: "//depot/a.go", StartLine: 3, EndLine: 3, Severity: review.SeverityLow, Title: "Small", Explanation: "It is @small.",
				Quote: "\tx := f.read() // `a`", Replacement: "\tx := @g.read(\"a@b.com\")", ReplacementChecked: true,
			},
			{Path: "//depot/b.go", Severity: review.SeverityHigh, Title: "Ask @everybody [here](https://evil.example)"},
		}
	}
	return r
}

// A review is posted as a silent comment on the line of each finding, and one summary.
func TestReviewIsPostedInSilentComments(t *testing.T) {
	t.Parallel()
	s := reviewed()
	server := newServer(t, s)
	r := report(review.OutcomeFindings)
	r.Links = review.Links{Change: "https://swarm.example.com/changes/{changelist}", File: "https://swarm.example.com/files/{path}#{line}"}
	for range 2 {
		id, err := server.Send(t.Context(), r, key, time.Now())
		if err != nil || id != "swarm-comment-6" {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, f := range s.forms {
		got = append(got, strings.Join([]string{f.Get("topic"), f.Get("silenceNotification"), f.Get("context[file]"), f.Get("context[rightLine]"), f.Get("context[version]")}, " "))
	}
	if want := []string{"reviews/12 true //depot/b.go  2", "reviews/12 true //depot/a.go 3 2", "reviews/12 true   "}; !slices.Equal(got, want) || len(s.runs) != 1 || s.edits != nil {
		t.Fatalf("comments %q, test runs %+v, edits %v", got, s.runs, s.edits)
	}
	inline, _, _ := strings.Cut(s.forms[1].Get("body"), keyPrefix)
	if want := "low: Small\n//depot/a.go:3\n\nIt is (at)small.\n\nSuggested fix:\n\n    -     x := f.read() // `a`\n    +     x := @g.read(\"a@b.com\")\n\n<https://swarm.example.com/files/depot/a.go#3>\n\n"; inline != want {
		t.Errorf("comment\n%q\nwant\n%q", inline, want)
	}
	summary, _, _ := strings.Cut(s.forms[2].Get("body"), keyPrefix)
	want := "Criticizer: 2 findings.\n1 file reviewed, which is the whole change.\n<https://swarm.example.com/changes/4711>\n\n" +
		"high: Ask (at)everybody \\[here\\](https\\[:\\]//evil.example) (//depot/b.go)\n\nlow: Small (//depot/a.go:3)\n\n"
	if summary != want {
		t.Errorf("summary\n%q\nwant\n%q", summary, want)
	}
	if run := s.runs[0]; run.Status != "fail" || run.Version != 2 || run.Change != 4711 || run.Completed == 0 {
		t.Errorf("test run %+v", run)
	}
}

// A later version edits the comments of the one before, marks the resolved findings, and
// posts the new ones. A late attempt at the earlier version changes nothing.
func TestLaterVersionEditsTheComments(t *testing.T) {
	t.Parallel()
	s := reviewed()
	server := newServer(t, s)
	first := report(review.OutcomeFindings)
	send := func(r review.Report, k review.DeliveryKey) {
		t.Helper()
		if id, err := server.Send(t.Context(), r, k, time.Now()); err != nil || id != "swarm-comment-6" {
			t.Fatalf("id %q, error %v", id, err)
		}
	}
	send(first, key)
	second, again := report(review.OutcomeFindings), key
	second.Version, again.Version = 2, 2
	second.Earlier, second.EarlierOf = 1, 4711
	second.Findings[0].Title = "Small, in other words"
	second.Findings[1] = review.Finding{Path: "//depot/c.go", Severity: review.SeverityMedium, Title: "New"}
	second.Progress = review.Compare(first, second)
	s.late = true
	for _, class := range []failure.Class{failure.UpstreamInternal, failure.UpstreamInternal} { // of a new comment, and of an edit
		s.locked(func() { s.fault = func(w http.ResponseWriter) bool { w.WriteHeader(500); return true } })
		if _, err := server.Send(t.Context(), second, again, time.Now()); failure.ClassOf(err) != class {
			t.Fatalf("error %v, want %s", err, class)
		}
		s.locked(func() { s.fault = nil })
	}
	send(second, again)
	send(second, again)
	send(first, key)
	s.locked(func() {
		if len(s.comments) != 7 || !slices.Equal(s.edits, []int{5, 4, 6}) || len(s.runs) != 2 {
			t.Errorf("%d comments, edits %v, test runs %+v", len(s.comments), s.edits, s.runs)
		}
		if body := s.comments[3]["body"].(string); !strings.HasPrefix(body, resolvedMark+"2.") || len(keysOf(body)) != 1 {
			t.Errorf("the comment on the resolved finding is %q", body)
		}
	})
	// The finding is back, and the submit has another number than the shelf.
	third, submitted := report(review.OutcomeFindings), review.DeliveryKey{Changelist: 4712, Recipient: key.Recipient, Version: 3}
	third.Changelist, third.Version, third.EarlierOf = 4712, 3, 4711
	send(third, submitted)
	s.locked(func() {
		if body := s.comments[3]["body"].(string); len(s.comments) != 7 || strings.HasPrefix(body, resolvedMark) {
			t.Errorf("%d comments, the finding reads %q", len(s.comments), body)
		}
	})
}

// The test run fails from a severity on, and if anything was not reviewed.
func TestTestRunFailsFromASeverityOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		outcome  review.Outcome
		severity review.Severity // of the finding, if there is one
		least    review.Severity
		passes   bool
		standIn  bool
	}{
		{outcome: review.OutcomeClean, passes: true},
		{outcome: review.OutcomeClean, standIn: true},
		{outcome: review.OutcomeFindings, severity: review.SeverityMedium, passes: true},
		{outcome: review.OutcomeFindings, severity: review.SeverityHigh},
		{outcome: review.OutcomeFindings, severity: "unknown"},
		{outcome: review.OutcomeFindings, severity: review.SeverityLow, least: review.SeverityLow},
		{outcome: review.OutcomeFindings, severity: review.SeverityHigh, least: review.SeverityCritical, passes: true},
		{outcome: review.OutcomePartial},
		{outcome: review.OutcomeNotReviewed},
		{outcome: ""},
	} {
		s := reviewed()
		server := newServer(t, s)
		server.cfg.FailSeverity = cmp.Or(tc.least, server.cfg.FailSeverity)
		r := report(tc.outcome)
		r.StandIn = tc.standIn
		if r.Findings = nil; tc.severity != "" {
			r.Findings = []review.Finding{{Path: "//depot/a.go", Severity: tc.severity}}
		}
		if _, err := server.Send(t.Context(), r, key, time.Now()); err != nil {
			t.Fatal(err)
		}
		s.locked(func() {
			if passes := s.runs[0].Status == "pass"; passes != tc.passes {
				t.Errorf("%+v: %+v", tc, s.runs[0])
			}
		})
	}
}

// The client understands the answers that the API's documentation shows.
func TestDocumentedAnswers(t *testing.T) {
	t.Parallel()
	var posts []string
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := map[string]string{
			"GET /api/v9/reviews": "reviews", "GET /api/v9/comments": "comments", "POST /api/v9/comments": "comment",
			"GET /api/v11/reviews/12/testruns": "testruns", "POST /api/v11/reviews/12/testruns": "testruns",
		}[r.Method+" "+r.URL.Path]
		if r.URL.Query().Get("after") == "39" {
			file = "comments_end"
		}
		if r.Method == http.MethodPost {
			_ = r.ParseForm()
			posts = append(posts, r.URL.Path)
			if r.PostForm.Get("context[file]") == "//depot/b.go" { // a file that the review does not have
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error": "Provided context could not be filtered."}`))
				return
			}
		}
		http.ServeFile(w, r, filepath.Join("testdata", file+".json"))
	}))
	t.Cleanup(listener.Close)
	server := New(slog.New(slog.DiscardHandler), Config{URL: listener.URL, User: "bot", Ticket: secret.New(ticket), Test: "criticizer", FailSeverity: review.SeverityHigh, Keys: keys})
	id, err := server.Send(t.Context(), report(review.OutcomeFindings), key, time.Now())
	comments := "/api/v9/comments"
	if want := []string{comments, comments, comments, comments, "/api/v11/reviews/12/testruns"}; err != nil || id != "swarm-comment-42" || !slices.Equal(posts, want) {
		t.Errorf("id %s, posts %v, error %v", id, posts, err)
	}
}

func TestCommentOnAChangeWithoutAReview(t *testing.T) {
	t.Parallel()
	s := &standIn{}
	if _, err := newServer(t, s).Send(t.Context(), report(review.OutcomeClean), key, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.locked(func() {
		if len(s.topics) != 1 || s.topics[0] != "changes/4711" || len(s.runs) != 0 {
			t.Errorf("comments on %v, test runs %+v", s.topics, s.runs)
		}
	})
}

// However an attempt ends, the next one posts the missing parts and nothing twice.
func TestFaultsLeadToNoSecondCopy(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(code)
			return true
		}
	}
	for name, tt := range map[string]struct {
		fault func(http.ResponseWriter) bool
		late  bool
		class failure.Class
	}{
		"too fast":                   {status(429), false, failure.RateLimited},
		"busy":                       {status(503), false, failure.ServerBusy},
		"no permission":              {status(403), false, failure.AuthDenied},
		"no such API":                {status(404), false, failure.ConfigInvalid},
		"failed":                     {status(500), false, failure.UpstreamInternal},
		"failed when it was done":    {status(500), true, failure.UpstreamInternal},
		"a break when it was done":   {func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }, true, failure.DeliveryAmbiguous},
		"an answer that is not JSON": {func(w http.ResponseWriter) bool { _, _ = fmt.Fprint(w, "<html>"); return true }, true, failure.DeliveryAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reviewed()
			s.fault, s.late = tt.fault, tt.late
			server := newServer(t, s)
			_, err := server.Send(t.Context(), report(review.OutcomeFindings), key, time.Now())
			if failure.ClassOf(err) != tt.class || strings.Contains(err.Error(), ticket) {
				t.Fatalf("error %v, want %s", err, tt.class)
			}
			s.locked(func() { s.fault = nil })
			if _, err := server.Send(t.Context(), report(review.OutcomeFindings), key, time.Now()); err != nil {
				t.Fatal(err)
			}
			s.locked(func() {
				if len(s.comments) != 6 || len(s.runs) != 1 {
					t.Errorf("%d comments, %d test runs", len(s.comments), len(s.runs))
				}
			})
		})
	}
}

// A comment or test run of another account, or without our key, hides nothing.
func TestForgedParts(t *testing.T) {
	t.Parallel()
	comment := func(user, token string) map[string]any {
		return map[string]any{"id": 9, "user": user, "body": "no findings\n\n" + keyPrefix + token}
	}
	run := func(token string) testRun {
		return testRun{Test: "criticizer", Version: 2, Status: "pass", Messages: []string{"ok", keyPrefix + token}}
	}
	for name, tc := range map[string]struct {
		comments []map[string]any
		runs     []testRun
	}{
		"another author":               {[]map[string]any{comment("mallory", keys.Token(key))}, nil},
		"a guessed key":                {[]map[string]any{comment("bot", strings.Repeat("0", 32))}, []testRun{run(strings.Repeat("0", 32))}},
		"our key is not the last line": {[]map[string]any{{"id": 9, "user": "bot", "body": keyPrefix + keys.Token(key) + "\nmore"}}, nil},
		"a run with the comment's key": {nil, []testRun{run(keys.Token(key))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reviewed()
			s.comments, s.runs = append(s.comments, tc.comments...), tc.runs
			server := newServer(t, s)
			if e, err := server.Lookup(t.Context(), key, "", time.Now().Add(-time.Hour)); err != nil || e.State != review.EvidenceAbsent {
				t.Errorf("%+v, %v", e, err)
			}
			if _, err := server.Send(t.Context(), report(review.OutcomeFindings), key, time.Now()); err != nil {
				t.Fatal(err)
			}
			s.locked(func() {
				if len(s.forms) != 3 || len(s.runs) != len(tc.runs)+1 || s.runs[len(tc.runs)].Status != "fail" {
					t.Errorf("%d comments posted, test runs %+v", len(s.forms), s.runs)
				}
			})
		})
	}
}

// A look-up reads a bounded number of comments. With more, nothing is posted twice.
func TestLookupIsBounded(t *testing.T) {
	t.Parallel()
	s := reviewed()
	for i := range 2 * maxPages { // the stand-in has pages of two
		s.comments = append(s.comments, map[string]any{"id": i + 10, "user": "mallory", "body": "more"})
	}
	server := newServer(t, s)
	if e, err := server.Lookup(t.Context(), key, "", time.Now().Add(-time.Hour)); err != nil || e.State != review.EvidenceUnknown || !e.AskAgain.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := server.Send(t.Context(), report(review.OutcomeFindings), key, time.Now()); failure.ClassOf(err) != failure.DeliveryAmbiguous || len(s.forms) != 0 {
		t.Errorf("%v, %d comments posted", err, len(s.forms))
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	s := reviewed()
	server := newServer(t, s)
	look := func(since time.Time, want review.EvidenceState) {
		t.Helper()
		got, err := server.Lookup(t.Context(), key, "", since)
		if err != nil || got.State != want {
			t.Errorf("%+v, %v: want %s", got, err, want)
		}
	}
	look(time.Now(), review.EvidenceUnknown)
	look(time.Now().Add(-time.Hour), review.EvidenceAbsent)
	if _, err := server.Send(t.Context(), report(review.OutcomeClean), key, time.Now()); err != nil {
		t.Fatal(err)
	}
	look(time.Now(), review.EvidenceAccepted)
	s.locked(func() { s.runs = nil })
	look(time.Now().Add(-time.Hour), review.EvidenceAbsent) // the test run is missing
}

// Ping needs a valid ticket and changes nothing.
func TestPing(t *testing.T) {
	t.Parallel()
	s := reviewed()
	if err := newServer(t, s).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	s.locked(func() {
		if len(s.comments) != 3 || len(s.runs) != 0 {
			t.Errorf("comments %+v, test runs %+v", s.comments, s.runs)
		}
	})
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	for want, cfg := range map[failure.Class]Config{
		failure.AuthDenied:         {URL: listener.URL, User: "bot", Ticket: secret.New("another")},
		failure.NetworkUnreachable: {URL: "http://127.0.0.1:1", User: "bot", Ticket: secret.New(ticket)},
	} {
		if err := New(slog.New(slog.DiscardHandler), cfg).Ping(t.Context()); failure.ClassOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// hostile returns a report with s wherever a change or a model writes.
func hostile(s string) review.Report {
	r := report(review.OutcomeFindings)
	r.Reason = s
	r.Findings = []review.Finding{{Path: s, StartLine: 1, EndLine: 1, Severity: review.Severity(s), Title: s, Explanation: s, Suggestion: s, Quote: s, Replacement: s + "\n" + s, ReplacementChecked: true}}
	return r
}

func checkMarkdown(t *testing.T, s string) {
	t.Helper()
	r := hostile(s)
	plaintest.NoMarkdown(t, newSummary(r, "0", "1"))
	plaintest.NoMarkdown(t, newInline(r, r.Findings[0], "0"))
}

// The payloads are checked by every run of the tests.
func FuzzComment(f *testing.F) {
	for _, s := range plaintest.Payloads() {
		f.Add(s)
	}
	f.Fuzz(checkMarkdown)
}
