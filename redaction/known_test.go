package redaction

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// The longest value that a text begins with is found, also if values are prefixes of
// others.
func TestLongestKnownValueIsFound(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("abAB19"[draw.IntN(6)])
		}
		return b.String()
	}
	for round := range 200 {
		stem := "Xk29dkQ0" + word(20)
		var v values
		for range 30 {
			n := minKnown + draw.IntN(len(stem)-minKnown)
			v.add([]span{{value: stem[:n] + word(draw.IntN(3))}}, isUnmistakable)
		}
		v.index()
		for range 50 {
			text := stem[:minKnown+draw.IntN(len(stem)-minKnown)] + word(4)
			want := ""
			for _, s := range v.sorted {
				if strings.HasPrefix(text, s.value) && len(s.value) > len(want) {
					want = s.value
				}
			}
			if got, _ := v.at(text); got.value != want {
				t.Fatalf("round %d: %q begins with %q, got %q of %v", round, text, want, got.value, v.sorted)
			}
		}
	}
}

// A text that would take too long to read is masked whole: its secrets may be on other lines
// than their names. A review does not read such a file.
func TestTextOfTooMuchWorkIsMasked(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	const nested, secret = "password(token(secret(\n", "Xk29dkQ0dks!"
	text := "f()\n" + strings.Repeat(nested, workSlack/200) + "passwords = [\n  \"" + secret + "\",\n]\n"
	out, marks, err := p.Explain(text, false)
	if err != nil || strings.Contains(out.String(), secret) || marks[len(marks)-1].Rule != "work limit" {
		t.Errorf("%v: %s", err, fmt.Sprintf("%.200q", out.String()[max(0, len(out.String())-200):]))
	}
	file := func(path, text string) review.File {
		return review.File{DepotPath: path, Action: review.ActionEdit, Type: "text", Whole: review.Compress(text), Diff: "@@ -0,0 +1,1 @@\n+f()\n"}
	}
	change, err := p.Change(review.Change{Number: 1, Files: []review.File{file("//d/a", text), file("//d/b", "f()\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := change.Files[0], change.Files[1]; a.Skipped != review.SkipSecret || a.Diff.String() != "" || b.Skipped != "" || !strings.Contains(b.Diff.String(), "f()") {
		t.Errorf("files %+v and %+v", a, b)
	}
}
