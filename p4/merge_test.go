package p4

import (
	"strings"
	"testing"
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
