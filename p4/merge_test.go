package p4

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
)

// Lines are single letters. Edits that come from source are applied to before;
// edits that the author made in the merge are not.
func TestMerge(t *testing.T) {
	t.Parallel()
	lines := func(s string) string { return strings.Join(strings.Split(s, ""), "\n") + "\n" }
	for name, tt := range map[string]struct{ before, source, after, want string }{
		"all of it is from the source":              {"abc", "xyz", "xyz", "xyz"},
		"nothing of it is from the source":          {"abcdefg", "abcdefg", "abcXefg", "abcdefg"},
		"an addition of the source":                 {"abcd", "abXcd", "abXcd", "abXcd"},
		"a deletion of the source":                  {"abcd", "abd", "abd", "abd"},
		"an addition beside one of the source":      {"abcdefgh", "abcdefSgh", "aNbcdefSgh", "abcdefSgh"},
		"an addition among additions of the source": {"abc", "aSTUVbc", "aSTNUVbc", "aSTUVbc"},
		"an addition dropped in the merge":          {"ac", "aXYZc", "aXZc", "aXYZc"},
		"lines of the target alone stay":            {"TabcU", "abSc", "TabScU", "TabScU"},
	} {
		if got := merge(lines(tt.before), lines(tt.source), lines(tt.after)); got != lines(tt.want) {
			t.Errorf("%s: %q, want %q", name, strings.ReplaceAll(got, "\n", ""), tt.want)
		}
	}
}

// For any texts, an edit is hidden only if source has its lines.
func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\nd")
	f.Add("", "a\n", "a\nb\n")
	f.Add("a", "a\n", "a")
	f.Fuzz(func(t *testing.T, before, source, after string) {
		if got := merge(before, before, after); got != before {
			t.Errorf("a source that brings nothing makes %q of %q", got, before)
		}
		if got := merge(before, after, after); got != after {
			t.Errorf("a copy of the source %q leaves %q to review", after, got)
		}
		_ = merge(before, source, after)
	})
}

// The work of diff and merge grows with the texts, not with the product of their
// edits: eight times the lines take less than twenty times as long. Quadratic work
// takes 64 times as long.
func TestDiffAndMergeAreLinear(t *testing.T) {
	for name, tt := range map[string]struct {
		work  func(before, source, after string)
		texts func(lines int) (before, source, after string)
	}{
		"diff":                     {func(before, _, after string) { Diff(before, after, 10) }, alternating},
		"diff of repetitive texts": {func(before, _, after string) { Diff(before, after, 10) }, repetitive},
		"merge":                    {func(before, source, after string) { merge(before, source, after) }, alternating},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(lines int) func() {
				before, source, after := tt.texts(lines)
				return func() { tt.work(before, source, after) }
			}
			cputest.Linear(t, 20, 10*time.Millisecond, of(10_000), of(80_000))
		})
	}
}

// repetitive makes texts of 300 different lines in random order.
func repetitive(lines int) (before, source, after string) {
	random := rand.New(rand.NewPCG(1, 2))
	var texts [2]strings.Builder
	for range lines {
		for i := range texts {
			fmt.Fprintf(&texts[i], "line %d\n", random.IntN(300))
		}
	}
	return texts[0].String(), "", texts[1].String()
}

// alternating makes texts of which every second line differs in all three.
func alternating(lines int) (before, source, after string) {
	var texts [3]strings.Builder
	for i := range lines {
		for j := range texts {
			if i%2 == 0 {
				fmt.Fprintf(&texts[j], "%x\n", i)
			} else {
				fmt.Fprintf(&texts[j], "%x%c\n", i, 'a'+j)
			}
		}
	}
	return texts[0].String(), texts[1].String(), texts[2].String()
}
