package p4

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

func TestUnified(t *testing.T) {
	t.Parallel()
	numbered := func(n int, changed ...int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
			for _, c := range changed {
				if c == i+1 {
					b.WriteString("0\n")
				}
			}
		}
		return b.String()
	}
	cases := []struct {
		name, before, after, want string
	}{
		{"equal texts", "a\n", "a\n", ""},
		{"all new", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"all gone", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"context on both sides", numbered(9), numbered(9, 5), "@@ -4,4 +4,5 @@\n 4\n 5\n+0\n 6\n 7\n"},
		{"changes that are close share a hunk", numbered(9), numbered(9, 2, 6), "@@ -1,8 +1,10 @@\n 1\n 2\n+0\n 3\n 4\n 5\n 6\n+0\n 7\n 8\n"},
		{"changes that are far apart do not", numbered(9), numbered(9, 2, 7), "@@ -1,4 +1,5 @@\n 1\n 2\n+0\n 3\n 4\n@@ -6,4 +7,5 @@\n 6\n 7\n+0\n 8\n 9\n"},
		{"lines without anchors", "}\n}\n}\n", "}\nx\n}\n}\n", "@@ -1,3 +1,4 @@\n }\n+x\n }\n }\n"},
		{"newline added at the end", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"newline missing on both sides", "a\nb", "c\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"},
		{"line end added to every line", "a\nb\n", "a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\n-b\n+a\r\n+b\r\n"},
		{"content that looks like a diff", "@@ -1 +1 @@\n--- a\n", "@@ -1 +1 @@\n+++ a\n", "@@ -1,2 +1,2 @@\n @@ -1 +1 @@\n---- a\n++++ a\n"},
	}
	for _, c := range cases {
		if got := Diff(c.before, c.after, 2); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}

// sides reconstructs both texts from a diff of one hunk with unlimited context.
func sides(diff string) (before, after string) {
	_, body, _ := strings.Cut(diff, "\n")
	lines := strings.SplitAfter(body, "\n")
	var a, b strings.Builder
	for i, line := range lines {
		if line == "" || line[0] == '\\' {
			continue
		}
		if strings.HasPrefix(lines[i+1], "\\") {
			line = strings.TrimSuffix(line, "\n")
		}
		if line[0] != '+' {
			a.WriteString(line[1:])
		}
		if line[0] != '-' {
			b.WriteString(line[1:])
		}
	}
	return a.String(), b.String()
}

func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add("}\n}\n\n}\n", "}\n\n}\n}\nx\n}\n")
	f.Add("\\ No newline at end of file", "\\ No newline at end of file\n")
	f.Add("a\n\\ No newline at end of file\n", "a")
	f.Add("\x1f\x18\x18\x18\x1800000000000000\xb6\xb6\xb6\xb6", "0") // hardly text
	f.Fuzz(func(t *testing.T, before, after string) {
		if before == after {
			return
		}
		checkWhole(t, review.File{Diff: Diff(before, after, 1), Whole: review.Compress(after)})
		if a, b := sides(Diff(before, after, 1<<30)); a != before || b != after {
			t.Errorf("diff of %q and %q yields %q and %q", before, after, a, b)
		}
		for hunk := range strings.SplitSeq(Diff(before, after, 1), "\n@@ ") {
			checkHunk(t, strings.TrimPrefix(hunk, "@@ "), before, after)
		}
	})
}

var testPipeline = sync.OnceValues(func() (*redaction.Pipeline, error) {
	return redaction.New(redaction.Config{Key: secret.New("a key of the tests")})
})

// checkWhole fails the test if redaction cannot read the file whole.
func checkWhole(t *testing.T, f review.File) {
	t.Helper()
	pipeline, err := testPipeline()
	testkit.NoError(t, err)
	if (len(f.Whole) == 0) != (f.Diff == "") {
		t.Errorf("%s: a diff of %d bytes with a whole text of %d", f.DepotPath, len(f.Diff), len(f.Whole))
	}
	if _, err := pipeline.Change(review.Change{Number: 1, Files: []review.File{f}}); err != nil {
		t.Errorf("%s: %v", f.DepotPath, err)
	}
}

// checkHunk compares the line numbers of a hunk with its lines and with the texts.
func checkHunk(t *testing.T, hunk, before, after string) {
	t.Helper()
	var a, aCount, b, bCount int
	if _, err := fmt.Sscanf(hunk, "-%d,%d +%d,%d @@", &a, &aCount, &b, &bCount); err != nil {
		t.Fatalf("header of %q: %v", hunk, err)
	}
	old, updated := sides("@@ " + strings.TrimSuffix(hunk, "\n") + "\n")
	at := func(text string, from, count int) string {
		lines := splitLines(text)
		from -= min(count, 1)
		return strings.Join(lines[from:from+count], "")
	}
	if at(before, a, aCount) != old || at(after, b, bCount) != updated {
		t.Errorf("hunk %q has wrong line numbers for %q and %q", hunk, before, after)
	}
}

func TestHunksHaveTheHeadingAboveThem(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("\tx()\n", 8)
	for name, tt := range map[string]struct{ text, want string }{
		"Go":             {"package p\n\nfunc (s *S) Run(x int) error {\n", "func (s *S) Run(x int) error {"},
		"C with a label": {"#include <x.h>\n\nint main(int argc)\n{\nout:\n", "int main(int argc)"},
		"Python":         {"import x\nclass A:\n    def go(self):\n", "class A:"},
		"SQL":            {"-- x\nCREATE TABLE t (\n", "CREATE TABLE t ("},
		"plain text":     {"  indented\n\n  more\n", ""},
		"a long heading": {"func F(" + strings.Repeat("é", 200) + ")\n", "func F(" + strings.Repeat("é", 200) + ")"},
		"a line of data": {"func F()\nvar x = \"" + strings.Repeat("y", 2000) + "\"\n", "func F()"},
	} {
		before := tt.text + body
		got, _, _ := strings.Cut(Diff(" 1\n"+before, " 2\n"+before+"\ty()\n", 2), "\n+\ty()")
		got = got[strings.LastIndex(got, "@@")+2:]
		if got, _, _ = strings.Cut(got, "\n"); strings.TrimPrefix(got, " ") != tt.want {
			t.Errorf("%s: heading %q, want %q", name, got, tt.want)
		}
	}
}
