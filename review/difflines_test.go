package review

import (
	"slices"
	"testing"
)

func TestDiffLines(t *testing.T) {
	t.Parallel()
	got := slices.Collect(DiffLines("@@ -3,3 +4,3 @@ int f()\n a\n-b\n+@@ -1 +1 @@\n\n@@ -9,1 +8,0 @@\n-x\n\\ No newline at end of file\nodd\n"))
	want := []DiffLine{
		{'@', 4, "int f()"}, {' ', 4, "a"}, {'-', 5, "b"}, {'+', 5, "@@ -1 +1 @@"}, {' ', 6, ""},
		{'@', 9, ""}, {'-', 9, "x"}, {0, 9, "odd"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
