package llm

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

func TestPreview(t *testing.T) {
	t.Parallel()
	book, err := rules.Load()
	if err != nil {
		t.Fatal(err)
	}
	endpoint := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the endpoint was asked") })
	r, _ := newReviewer(t, endpoint, withRules(book), func(c *Config) {
		c.MaxTokensPerReview = 2 * (c.MaxPromptTokens + c.MaxAnswerTokens)
	})
	lines := make([]string, 12_000)
	for i := range lines {
		lines[i] = fmt.Sprintf("x%d := f(%d)", i, i)
	}
	got, err := r.Preview(t.Context(), redacted(t,
		added("//depot/monster.go", lines...),
		added("//depot/small.go", "a", "b"),
		added("//depot/small_test.go", "a"),
		review.File{DepotPath: "//depot/go.sum", Action: review.ActionEdit, Type: "text", Skipped: review.SkipLockFile},
		added("//depot/data.txt", strings.Repeat("1, ", maxLineBytes)),
	), false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []FilePreview{
		{Path: "//depot/monster.go", Reason: review.SkipOverBudget, Rules: "go"},
		{Path: "//depot/small.go", Rules: "go"},
		{Path: "//depot/small_test.go", Rules: "go"},
		{Path: "//depot/go.sum", Reason: review.SkipLockFile},
		{Path: "//depot/data.txt", Reason: review.SkipLongLine},
	} {
		f := got.Files[i]
		if f.Path != want.Path || f.Reason != want.Reason || f.Rules != want.Rules {
			t.Errorf("file is %+v, want %+v", f, want)
		}
		if shown := want.Reason != review.SkipLockFile; (f.Tokens > 0) != shown || (len(f.Chunks) > 0) != shown {
			t.Errorf("%s has %d tokens in chunks %v", f.Path, f.Tokens, f.Chunks)
		}
	}
	if !slices.Equal(got.Rules, []string{"go"}) || got.Tokens > got.Budget || len(got.Chunks) == 0 {
		t.Errorf("preview is %+v", got)
	}
	for _, c := range got.Chunks {
		if c.PromptTokens > r.cfg.MaxPromptTokens || c.Tokens >= c.PromptTokens {
			t.Errorf("chunk is %+v", c)
		}
	}
}

func TestPreviewOfAnEmptyChange(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, http.NotFoundHandler())
	got, err := r.Preview(t.Context(), redacted(t), true)
	if err != nil || len(got.Chunks) != 0 || got.Tokens != 0 {
		t.Errorf("preview is %+v, %v", got, err)
	}
}
