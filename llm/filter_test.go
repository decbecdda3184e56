package llm

import (
	"slices"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// A finding that a reader marked as wrong is dropped at its place only: the same
// remark at another place is still reported.
func TestFindingsMarkedWrongAreDropped(t *testing.T) {
	t.Parallel()
	const code = "defer conn.Close()"
	answer := answerWith(fields{"path": "//depot/a.go", "quote": code}, fields{"path": "//depot/b.go", "quote": code})
	book := bookOf(t, "name: ours\nfiles: ['*.go']\nlook_for:\n- Leaks.\n")
	r := withFaults(t, func(c *Config) { c.Rules, c.MaxFindings = book, 1 }, llmsim.Fault{Kind: llmsim.Scripted, Content: answer})
	change := redacted(t, added("//depot/a.go", code), added("//depot/b.go", code))
	shared := newAttempts()
	first, err := r.Review(t.Context(), change, shared.options())
	if err != nil || len(first.Findings) != 1 || len(first.Findings[0].Places) != 1 {
		t.Fatalf("draft %+v, error %v", first, err)
	}
	if first.Findings[0].Rule != "ours" {
		t.Errorf("rule is %q", first.Findings[0].Rule)
	}
	shared.wrong = []string{first.Findings[0].Fingerprint()}
	second, err := r.Review(t.Context(), change, shared.options())
	if want := []string{"high b.go:1-1 added"}; err != nil || !slices.Equal(summary(second), want) || second.Dropped[review.DropWrong] != 1 {
		t.Errorf("shows %q, dropped %v, error %v: want %q", summary(second), second.Dropped, err, want)
	}
	shared.wrong = append(shared.wrong, second.Findings[0].Fingerprint())
	third, err := r.Review(t.Context(), change, shared.options())
	if err != nil || len(third.Findings) != 0 || third.Dropped[review.DropWrong] != 2 || read(third) != 2 {
		t.Errorf("draft %+v, error %v: want no finding in two files", third, err)
	}
}
