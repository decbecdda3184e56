package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

var buggy = review.File{
	DepotPath: "//depot/main/store.go", Action: review.ActionEdit, Type: "text",
	Diff: "@@ -7,4 +7,5 @@ func save\n \tf, err := os.Create(name)\n-\tif err != nil {\n+\t_ = os.Remove(name)\n+\tpassword := \"hunter2hunter2\"\n \t}\n \treturn nil\n",
}

// reviewed reviews with the simulator.
func reviewed(t *testing.T, c redaction.Change) review.Draft {
	t.Helper()
	r, logs := newReviewer(t, llmsim.New(llmsim.Config{}))
	d, err := r.Review(t.Context(), c, review.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustNotShow(t, "log", logs.String(), "hunter2")
	return d
}

func TestReviewFindsAndAnchors(t *testing.T) {
	t.Parallel()
	d := reviewed(t, redacted(t, buggy))
	var got []string
	for _, f := range d.Findings {
		got = append(got, fmt.Sprintf("%s %s:%d-%d %s", f.Severity, f.Path, f.StartLine, f.EndLine, f.Title))
	}
	want := []string{
		"high //depot/main/store.go:9-9 Credential in the source",
		"medium //depot/main/store.go:8-8 Error is thrown away",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d.Model != "test-model" || d.Usage.Calls != 1 || d.Usage.PromptTokens == 0 || d.Usage.CompletionTokens == 0 || read(d) != 1 || len(d.PromptDigest) != 64 {
		t.Errorf("draft %+v", d)
	}
}

func TestEveryFileIsReadOrOmitted(t *testing.T) {
	t.Parallel()
	c := redacted(t,
		added("//depot/a.go", "one"),
		review.File{DepotPath: "//depot/logo.png", Action: review.ActionAdd, Type: "binary", Skipped: review.SkipBinary},
		review.File{DepotPath: "//depot/same.go", Action: review.ActionIntegrate, Type: "text"},
		added("//depot/data.json", strings.Repeat("1, ", maxLineBytes)),
		added("//depot/gate.c", `char *password = "kQ7dLw2XvB9nR4tY";`, "int f(void) { return kQ7dLw2XvB9nR4tY(0); }"),
	)
	d := reviewed(t, c)
	want := map[string]review.SkipReason{
		"//depot/logo.png":  review.SkipBinary,
		"//depot/same.go":   review.SkipUnchanged,
		"//depot/data.json": review.SkipLongLine,
		"//depot/gate.c":    review.SkipMaskedCode,
	}
	if read(d) != 1 || !maps.Equal(unread(d), want) {
		t.Errorf("read %d, omitted %v", read(d), unread(d))
	}
}

// Each changed line has its own state: a masked token is seen, masked code, a cut line and a
// guessed character are not.
func TestCoverageOfLines(t *testing.T) {
	t.Parallel()
	guessed := added("//depot/l.c", "int a;", "// größer", "int b;")
	guessed.Charset = "windows-1252"
	d := reviewed(t, redacted(t,
		added("//depot/a.c", `char *password = "kQ7dLw2XvB9nR4tY";`, "int b;", "int c = kQ7dLw2XvB9nR4tY(0);", "// "+strings.Repeat("x", maxLineBytes), "int e;"),
		guessed,
		review.File{DepotPath: "//depot/e.c", Action: review.ActionEdit, Type: "text", Diff: "@@ -3,2 +3,2 @@\n a\n-b\n+c\n"}))
	want := review.Coverage{
		{Path: "//depot/a.c", Lines: []review.Lines{
			{First: 1, Last: 1, State: review.LinesMasked}, {First: 2, Last: 2, State: review.LinesShown},
			{First: 3, Last: 3, State: review.LinesHidden, Why: review.SkipMaskedCode}, {First: 4, Last: 4, State: review.LinesHidden, Why: review.SkipLongLine},
			{First: 5, Last: 5, State: review.LinesShown},
		}},
		{Path: "//depot/l.c", Lines: []review.Lines{
			{First: 1, Last: 1, State: review.LinesShown}, {First: 2, Last: 2, State: review.LinesHidden, Why: review.SkipGuessed}, {First: 3, Last: 3, State: review.LinesShown},
		}},
		{Path: "//depot/e.c", Lines: []review.Lines{{First: 4, Last: 4, State: review.LinesShown}}},
	}
	got, _ := json.Marshal(d.Coverage)
	if expected, _ := json.Marshal(want); string(got) != string(expected) {
		t.Errorf("got  %s\nwant %s", got, expected)
	}
	if text := d.Coverage.Tally().Text(); text != "1 of 3 files reviewed in full. Nothing is known about the rest: code was masked as a secret (1), the encoding is a guess (1)." {
		t.Error(text)
	}
}

func TestNothingToReviewMakesNoCall(t *testing.T) {
	t.Parallel()
	r := withFaults(t, nil)
	d, err := r.review(t, review.File{DepotPath: "//depot/a", Skipped: review.SkipDeleted})
	if err != nil || len(unread(d)) != 1 || r.calls() != 0 || d.Model != "test-model" {
		t.Errorf("draft %+v, error %v, calls %d", d, err, r.calls())
	}
}

// manyFiles returns n files that need about one small call each.
func manyFiles(n int) []review.File {
	var files []review.File
	for i := range n {
		lines := []string{"// TODO finish"}
		for j := range 250 {
			lines = append(lines, fmt.Sprintf("value[%d] = compute(%d)", j, j))
		}
		files = append(files, added(fmt.Sprintf("//depot/f%02d.go", i), lines...))
	}
	return files
}

// small limits a call to about one of manyFiles.
func small(c *Config) { c.MaxPromptTokens = minPromptTokens }

// An overlap is a handler that answers its first request only while another one
// is being served, and records how many were served at a time.
type overlap struct {
	next http.Handler
	both chan struct{} // closed once two requests are being served
	once sync.Once

	mu          sync.Mutex
	active, max int
}

func (o *overlap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // the probe
		o.next.ServeHTTP(w, r)
		return
	}
	o.mu.Lock()
	o.active++
	o.max = max(o.max, o.active)
	if o.active == 2 {
		o.once.Do(func() { close(o.both) })
	}
	o.mu.Unlock()
	<-o.both
	o.next.ServeHTTP(w, r)
	o.mu.Lock()
	o.active--
	o.mu.Unlock()
}

func TestLargeChangeTakesSeveralCalls(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	served := &overlap{next: sim, both: make(chan struct{})}
	r, _ := newReviewer(t, served, small, func(c *Config) { c.Concurrency = 3 })
	var steps []string
	change := redacted(t, append(manyFiles(8), buggy)...)
	d, err := r.Review(t.Context(), change, review.Options{Progress: func(done, total int) {
		steps = append(steps, fmt.Sprintf("%d/%d", done, total))
	}})
	if err != nil {
		t.Fatal(err)
	}
	calls := sim.Stats().Calls
	if read(d) != 9 || places(d.Findings) != 10 || calls < 4 || d.Usage.Calls != calls {
		t.Errorf("read %d files in %d calls (%d counted), %d findings", read(d), calls, d.Usage.Calls, len(d.Findings))
	}
	if served.max > 3 {
		t.Errorf("%d calls at a time, want up to 3", served.max)
	}
	if want := fmt.Sprintf("%d/%d", calls, calls); len(steps) != calls || steps[len(steps)-1] != want {
		t.Errorf("progress %v, want it to end with %s", steps, want)
	}
	for range 2 { // answers arrive in another order
		again, err := r.Review(t.Context(), change, review.Options{})
		if err != nil || !reflect.DeepEqual(again.Findings, d.Findings) || d.Findings[0].Severity != review.SeverityHigh {
			t.Errorf("order changed: %v, error %v", again.Findings, err)
		}
	}
}

func TestFilesOverTheBudgetAreHidden(t *testing.T) {
	t.Parallel()
	d, err := withFaults(t, func(c *Config) {
		c.MaxPromptTokens, c.MaxAnswerTokens, c.MaxTokensPerReview = minPromptTokens, 1_000, 3*(minPromptTokens+1_000)
	}).review(t, manyFiles(12)...)
	if err != nil || read(d) == 0 || read(d)+len(unread(d)) != 12 || len(unread(d)) == 0 {
		t.Errorf("read %d files, omitted %d, error %v", read(d), len(unread(d)), err)
	}
	for path, why := range unread(d) {
		if why != review.SkipOverBudget {
			t.Errorf("%s was not read: %s", path, why)
		}
	}
}

// A part is split if its prompt is too long or its answer is cut off. Splitting uses the
// review's budget, so it ends; if no part could be reviewed, the review fails.
func TestSplitting(t *testing.T) {
	t.Parallel()
	two := []review.File{added("//depot/a.go", "// TODO a", "x"), added("//depot/b.go", "// TODO b")}
	for name, test := range map[string]struct {
		files   []review.File
		context int // tokens of the endpoint, 0 without a limit
		faults  []llmsim.Fault
		least   int // calls
		most    int
		class   failure.Class
	}{
		"prompt too long":     {manyFiles(4), 6_000, nil, 3, 20, ""},
		"answer cut off":      {two, 0, []llmsim.Fault{{Kind: llmsim.Length, Times: 1}}, 3, 3, ""},
		"any prompt too long": {manyFiles(2), 1, nil, 1, 8, failure.TooLarge}, // the last for the other half
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := llmsim.New(llmsim.Config{ContextTokens: test.context})
			sim.Inject(test.faults...)
			r := simulate(t, sim, func(c *Config) { c.MaxTokensPerReview = 100_000 })
			d, err := r.review(t, test.files...)
			if (err != nil) != (test.class != "") || err != nil && failure.ClassOf(err) != test.class {
				t.Fatalf("draft %+v, error %v", d, err)
			}
			if err == nil && (read(d) != len(test.files) || places(d.Findings) != len(test.files)) {
				t.Errorf("read %d, found %d", read(d), len(d.Findings))
			}
			if n := r.calls(); n < test.least || n > test.most || n != d.Usage.Calls {
				t.Errorf("%d calls, usage %+v", n, d.Usage)
			}
		})
	}
}

// The next attempt, on any worker, and the next version of the review use the
// cached answers.
func TestNextAttemptUsesCachedAnswers(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	sim.Inject(llmsim.Fault{Kind: llmsim.RateLimit, Times: 1, Match: "\nfile //depot/f03.go"})
	shared := newAttempts()
	one, _ := newReviewer(t, sim, small, func(c *Config) { c.Concurrency = 1 })
	other, _ := newReviewer(t, sim, small, func(c *Config) { c.BaseURL = one.cfg.BaseURL })
	c := redacted(t, manyFiles(6)...)
	if _, err := one.Review(t.Context(), c, shared.options()); failure.ClassOf(err) != failure.RateLimited {
		t.Fatalf("got %v", err)
	}
	failed := sim.Stats().Calls
	d, err := other.Review(t.Context(), c, shared.options())
	if err != nil {
		t.Fatal(err)
	}
	again := sim.Stats().Calls - failed
	if read(d) != 6 || d.Usage.Calls != again || d.Usage.Kept != failed-1 || failed < 2 {
		t.Errorf("%d calls before the failure, %d after it, usage %+v", failed, again, d.Usage)
	}
	rerun, err := other.Review(t.Context(), c, shared.options())
	if err != nil || sim.Stats().Calls != failed+again || rerun.Usage.Kept != failed-1+again || len(rerun.Findings) != len(d.Findings) {
		t.Errorf("rerun made %d calls, usage %+v, error %v", sim.Stats().Calls-failed-again, rerun.Usage, err)
	}
	elsewhere, _ := newReviewer(t, llmsim.New(llmsim.Config{}), small)
	if d, err := elsewhere.Review(t.Context(), c, shared.options()); err != nil || d.Usage.Kept != 0 {
		t.Errorf("another endpoint: %v, usage %+v: want no answer of this one", err, d.Usage)
	}
	changed := manyFiles(6)
	changed[5] = added("//depot/f05.go", "value = compute()", "// TODO finish")
	partly, err := other.Review(t.Context(), redacted(t, changed...), shared.options())
	if err != nil || partly.Usage.Calls == 0 || partly.Usage.Kept == 0 {
		t.Errorf("rerun of a change with one other file: usage %+v, error %v", partly.Usage, err)
	}
}

// Fence and check codes are new in every attempt. The parts of a file that is in several
// calls are not.
func TestNextAttemptHasTheSameParts(t *testing.T) {
	t.Parallel()
	sim := llmsim.New(llmsim.Config{})
	shared := newAttempts()
	r, _ := newReviewer(t, sim)
	c := redacted(t, added("//depot/a.go", slices.Repeat([]string{"call(one, two)"}, 4_000)...))
	for range 4 {
		if d, err := r.Review(t.Context(), c, shared.options()); err != nil || read(d) != 1 {
			t.Fatalf("read %d, %v", read(d), err)
		}
	}
	if calls := sim.Stats().Calls; calls < 2 || calls > 4 {
		t.Errorf("%d calls in four attempts", calls)
	}
}

func TestFailureStartsNoOtherCall(t *testing.T) {
	t.Parallel()
	r := withFaults(t, small, llmsim.Fault{Kind: llmsim.InvalidKey})
	if _, err := r.review(t, manyFiles(10)...); failure.ClassOf(err) != failure.AuthDenied || r.calls() > 2 {
		t.Errorf("error %v after %d calls, want one for each under way", err, r.calls())
	}
}

// A panic in a call becomes an error that quotes nothing.
func TestPanicBecomesAnError(t *testing.T) {
	t.Parallel()
	_, err := withFaults(t, nil).Review(t.Context(), redacted(t, added("//depot/a.go", "x")), review.Options{Progress: func(int, int) { panic(canary) }})
	if failure.ClassOf(err) != failure.InvariantViolated {
		t.Fatalf("got %v", err)
	}
	mustNotShow(t, "error", err.Error())
}

func TestConcurrentReviewsDoNotMix(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, llmsim.New(llmsim.Config{}), small)
	changes := []redaction.Change{redacted(t, manyFiles(3)...), redacted(t, buggy)}
	var reviews sync.WaitGroup
	for i := range 6 {
		reviews.Go(func() {
			d, err := r.Review(t.Context(), changes[i%2], review.Options{})
			if err != nil || places(d.Findings) != 3-i%2 {
				t.Errorf("%d findings, error %v", places(d.Findings), err)
			}
		})
	}
	reviews.Wait()
}

// Texts of the model are bounded, titles have one line, and quotes are code of the
// change.
func TestTextsOfFindingsAreBounded(t *testing.T) {
	t.Parallel()
	f, err := parseFile(redacted(t, buggy).Files[0])
	if err != nil {
		t.Fatal(err)
	}
	m := remark{
		Path: "main/store.go", Severity: "high", Category: "security", Confidence: 1, Title: " a\nb\t c ",
		Explanation: strings.Repeat("x", 3*maxTextBytes), Quote: "made up", Line: 8,
	}
	found, counts := question{part: chunk{{f, f.hunks}}}.findings([]remark{m, {Path: "store.c"}, {Path: ""}, {Path: "ore.go"}})
	if len(found) != 1 || counts.Dropped[review.DropUnknownPath] != 3 {
		t.Fatalf("found %v, counted %v", found, counts)
	}
	got := found[0]
	if got.Path != "//depot/main/store.go" || got.Title != "a b c" || got.Quote != "" || got.StartLine != 0 || len(got.Explanation) > maxTextBytes+40 {
		t.Errorf("got %+v", got)
	}
}

func TestQuoteDistinguishesFilesWithOnePath(t *testing.T) {
	t.Parallel()
	var c chunk
	for i := range 2 {
		f := newFile("//depot/[REDACTED:email:0000]/a.go", "add, text")
		if err := f.parse(addedDiff("common()", fmt.Sprintf("line%d()", i))); err != nil {
			t.Fatal(err)
		}
		c = append(c, section{f, f.hunks})
	}
	f, at := question{part: c}.locate(remark{Path: c[0].file.shown, Quote: "line1()"})
	if f != c[1].file || at.start != 2 {
		t.Errorf("got %v at %+v", f, at)
	}
}
