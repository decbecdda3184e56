package llm

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// The lines that tell the tiers apart in a prompt.
const (
	fromChange  = "\tif len(p.free) == 0 { return nil } // tier 0"
	fromSibling = "\tfree []*Conn // tier 1"
	fromCaller  = "\tpool.Take() // tier 2"
)

// withContext is [edited] with a block of each tier. Those of tier 0 and 1 have n more lines.
func withContext(t *testing.T, n int) redaction.Change {
	t.Helper()
	filler := strings.Repeat("\tlater() // and more of it\n", n)
	whole := strings.Repeat("//\n", 8) + "\tp.mu.Lock()\n\tconn := p.free[len(p.free)-1]\n\tp.free = p.free[:len(p.free)-1]\n" +
		"\ttoken := \"[REDACTED:api_key:0a1b]\"\n\treturn conn\n" + fromChange + "\n" + filler
	file := edited
	file.Whole = review.Compress(whole)
	c, err := newPipeline(t).Change(review.Change{
		Number: 4711, User: "ann", Description: canary, Files: []review.File{file, added("//depot/main/other.go", "x := 1")},
		Context: review.Context{
			Sources: []review.Source{
				{Path: "//depot/main/conn.go", Whole: review.Compress(fromSibling + "\n// the caller holds the lock\n" + filler)},
				{Path: "//depot/main/use.go", Whole: review.Compress(fromCaller + "\n")},
			},
			Blocks: []review.Block{
				{Tier: review.TierChange, Kind: review.BlockEnclosing, Path: file.DepotPath, Line: 14, Lines: n + 1, For: []int{0}},
				{Tier: review.TierSiblings, Kind: review.BlockDefinition, Path: "//depot/main/conn.go", Line: 1, Lines: n + 2, For: []int{0}, Names: []string{"free"}},
				{Tier: review.TierCalls, Kind: review.BlockCall, Path: "//depot/main/use.go", Line: 1, Lines: 1, For: []int{0}, Names: []string{"Take"}},
			},
		},
	})
	if err != nil || len(c.Context) != 3 {
		t.Fatalf("%d blocks, error %v", len(c.Context), err)
	}
	return c
}

// A review shows the code around the change that its mode selects, the verification all of it,
// and both begin alike.
func TestContextGoesToItsCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		review   ContextMode
		reviewed []string
	}{
		{ContextNone, nil},
		{ContextFile, []string{fromChange}},
		{ContextAll, []string{fromChange, fromSibling}},
	} {
		r := withFaults(t, func(c *Config) { c.Verify, c.ReviewContext = VerifyOn, test.review }, answers(answerWith(fields{}))...)
		d, err := r.Review(t.Context(), withContext(t, 0), review.Options{})
		sent := r.sent
		if err != nil || read(d) != 2 || d.Context != (review.ContextUse{Shown: 3}) || len(sent.all) != 2 {
			t.Fatalf("%+v: %d calls, draft %+v, error %v", test, len(sent.all), d, err)
		}
		for i, want := range [][]string{test.reviewed, {fromChange, fromSibling, fromCaller}} {
			user := sent.messages(t, i)[1]
			for _, line := range []string{fromChange, fromSibling, fromCaller} {
				if got := strings.Count(user, line); got != strings.Count(strings.Join(want, "\n"), line) {
					t.Errorf("%+v: call %d shows %q %d times", test, i+1, line, got)
				}
			}
			if !strings.Contains(user, "\n| edit //depot/main/pool.go\n| add //depot/main/other.go\n") {
				t.Errorf("call %d does not list the files of the change:\n%s", i+1, user)
			}
		}
		begin, _, _ := strings.Cut(sent.messages(t, 0)[1], "\n\nThat was the change")
		if !strings.HasPrefix(sent.messages(t, 1)[1], begin) {
			t.Errorf("%+v: the verification does not begin as the review", test)
		}
	}
}

// Lines around the change refute a finding if the prompt shows them; they are the place
// of none.
func TestContextIsEvidence(t *testing.T) {
	t.Parallel()
	const high = "high pool.go:11-11 added"
	for name, test := range map[string]struct {
		review, verify string
		shows          []string
	}{
		"a line of the file":            {answerWith(fields{}), verdictWith(fields{"evidence": fromChange}), nil},
		"a line of a file beside it":    {answerWith(fields{}), verdictWith(fields{"evidence": "     1   " + fromSibling}), nil},
		"a line that is not shown":      {answerWith(fields{}), verdictWith(fields{"evidence": "\tif p.free == nil { return nil }"}), []string{high}},
		"a shown and an invented line":  {answerWith(fields{}), verdictWith(fields{"evidence": fromSibling + "\n\tmu sync.Mutex"}), []string{high}},
		"a comment beside the change":   {answerWith(fields{}), verdictWith(fields{"evidence": "// the caller holds the lock"}), []string{high}},
		"severe, about shown lines":     {answerWith(fields{"quote": fromChange}), `{"verdicts":[]}`, []string{"high pool.go:14-14 context"}},
		"not severe, about shown lines": {answerWith(fields{"quote": fromChange, "severity": "medium"}), `{"verdicts":[]}`, nil},
		"about a file beside the change": {
			answerWith(fields{"path": "//depot/main/conn.go", "quote": fromSibling, "severity": "critical"}), `{"verdicts":[]}`, nil,
		},
	} {
		r := withFaults(t, func(c *Config) { c.Verify, c.ReviewContext = VerifyOn, ContextAll }, answers(test.review, test.verify)...)
		d, err := r.Review(t.Context(), withContext(t, 0), review.Options{})
		if err != nil || !slices.Equal(summary(d), test.shows) {
			t.Errorf("%s: shows %q, dropped %v, error %v: want %q", name, summary(d), d.Dropped, err, test.shows)
		}
	}
}

// If prompt or budget have no room for the code around the change, that is left out and
// counted. The change is always reviewed.
func TestContextIsLeftOutNotTheChange(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines int
		sim   llmsim.Config
		use   review.ContextUse
		calls int
	}{
		"a prompt that is too small":          {3_000, llmsim.Config{}, review.ContextUse{LeftOut: 2}, 1},
		"an endpoint that refuses the prompt": {600, llmsim.Config{ContextTokens: 5_000}, review.ContextUse{LeftOut: 2}, 2},
	} {
		r := simulate(t, llmsim.New(test.sim), nil)
		d, err := r.Review(t.Context(), withContext(t, test.lines), review.Options{})
		if err != nil || read(d) != 2 || d.Context != test.use || r.calls() != test.calls {
			t.Errorf("%s: %d calls, draft %+v, error %v", name, r.calls(), d, err)
		}
	}
}

// An endpoint that does not read the code around the change gets no clean review for its
// prompt: the change is asked for without it.
func TestContextIsProven(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"reads all": 1 << 20, "reads 2,000 tokens less": 0} {
		calls := 0
		endpoint := &liar{lies: func(w http.ResponseWriter, h heard) {
			calls++
			read := h.messages
			if begin := strings.Index(read, "\ncontext "); begin >= 0 && limit == 0 {
				read = read[:begin] + read[begin+8_000:]
			}
			said200(w, findingsWith(codesIn(read)), "stop", len(h.messages)/4, 20)
		}}
		r, _ := newReviewer(t, endpoint)
		d, err := r.Review(t.Context(), withContext(t, 400), review.Options{})
		want, use := 1, review.ContextUse{Shown: 2}
		if limit == 0 {
			want, use = 3, review.ContextUse{LeftOut: 2} // once more, then without
		}
		if err != nil || read(d) != 2 || calls != want || d.Context != use {
			t.Errorf("%s: %d calls, draft %+v, error %v", name, calls, d, err)
		}
	}
}

// The change has the same calls with code around it as without, if its budget is short.
func TestContextTakesNoBudgetOfTheChange(t *testing.T) {
	t.Parallel()
	files := manyFiles(6)
	var blocks []review.Block
	for i, f := range files {
		files[i].Whole = review.Compress(strings.ReplaceAll(f.Diff[strings.Index(f.Diff, "\n")+2:], "\n+", "\n") + strings.Repeat("later()\n", 900))
		blocks = append(blocks, review.Block{Kind: review.BlockEnclosing, Path: f.DepotPath, Line: 252, Lines: 900, For: []int{i}})
	}
	var use []review.ContextUse
	for _, context := range []review.Context{{}, {Blocks: blocks}} {
		c, err := newPipeline(t).Change(review.Change{Number: 4711, Files: files, Context: context})
		if err != nil || len(c.Context) != len(context.Blocks) {
			t.Fatal(len(c.Context), err)
		}
		r := withFaults(t, func(c *Config) { c.MaxPromptTokens, c.MaxTokensPerReview = 2*minPromptTokens, 80_000 })
		d, err := r.Review(t.Context(), c, review.Options{})
		if err != nil || read(d) != 6 {
			t.Errorf("%d blocks: %d files read, omissions %v, error %v", len(context.Blocks), read(d), unread(d), err)
		}
		use = append(use, d.Context)
	}
	if got := fmt.Sprint(use); use[1].LeftOut == 0 {
		t.Errorf("context is %s: want some left out", got)
	}
}

// A preview has the prompts that a review sends, but for the codes and the fence.
func TestPreviewShowsWhatIsSent(t *testing.T) {
	t.Parallel()
	r := withFaults(t, func(c *Config) { c.Verify = VerifyOn }, answers(answerWith(fields{}))...)
	if _, err := r.Review(t.Context(), withContext(t, 5), review.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := r.Preview(t.Context(), withContext(t, 5), true)
	if err != nil || len(p.Chunks) != 1 || len(p.Chunks[0].Prompts) != 2 {
		t.Fatalf("preview %+v, error %v", p, err)
	}
	same := regexp.MustCompile(`check-code: [0-9a-f]{8}|[0-9a-f]{32}`)
	for i, got := range p.Chunks[0].Prompts {
		want := r.sent.messages(t, i)
		user, _, _ := strings.Cut(same.ReplaceAllString(got.User, ""), "\nfinding 1\n") // another one was made
		wantUser, _, _ := strings.Cut(same.ReplaceAllString(want[1], ""), "\nfinding 1\n")
		if got.System != want[0] || user != wantUser {
			t.Errorf("%s: preview\n%s\nsent\n%s", got.Task, user, wantUser)
		}
	}
}
