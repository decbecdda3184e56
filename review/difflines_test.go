package review

import (
	"slices"
	"testing"
)

func TestDiffLines(t *testing.T) {
	t.Parallel()
	got := slices.Collect(DiffLines("@@ -3,3 +4,3 @@ int f()\n a\n-b\n+@@ -1 +1 @@\n\n@@ -9,1 +8,0 @@\n-x\n\\ No newline at end of file\nodd\n"))
	want := []DiffLine{
		{'@', 4, "int f()", 1}, {' ', 4, "a", 2}, {'-', 5, "b", 3}, {'+', 5, "@@ -1 +1 @@", 4}, {' ', 6, "", 5},
		{'@', 9, "", 6}, {'-', 9, "x", 7}, {0, 9, "odd", 9},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
