package llm

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestParseNumbersTheNewContent(t *testing.T) {
	t.Parallel()
	var f file
	err := f.parse("@@ -10,3 +12,4 @@ int main(void)\n one\n-two\n+TWO\r\n+2.5\n\n three\n\\ No newline at end of file\n@@ -90 +93,0 @@\n-gone\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "context \n" +
		"@@ int main(void)\n" +
		"    12   one\n" +
		"       - two\n" +
		"    13 + TWO\n" +
		"    14 + 2.5\n" +
		"    15   \n" +
		"    16   three\n" +
		"@@ \n" +
		"       - gone\n"
	if got, _ := (chunk{{&f, f.hunks}}).withCodes(""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseRefusesMalformedDiffs(t *testing.T) {
	t.Parallel()
	for name, diff := range map[string]string{
		"text":                        canary + "\n",
		"no hunk header":              "+" + canary + "\n",
		"line without a mark":         "@@ -1 +1 @@\n" + canary + "\n",
		"file headers":                "--- a\n+++ b\n@@ -1 +1 @@\n+x\n",
		"line number beyond all use":  "@@ -1 +99999999999999999999 @@\n+x\n",
		"combined diff of two parent": "@@@ -1 -1 +1 @@@\n++x\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := new(file).parse(diff)
			if failure.ClassOf(err) != failure.InvariantViolated {
				t.Fatalf("got %v", err)
			}
			mustNotShow(t, "error", err.Error())
		})
	}
}

func TestParseCutsLongLines(t *testing.T) {
	t.Parallel()
	var f file
	long := "a" + strings.Repeat("é", maxLineBytes)
	if err := f.parse(addedDiff("short", long)); err != nil {
		t.Fatal(err)
	}
	got := f.hunks[0].lines[1].text
	cut := f.hunks[0].lines[1].cut
	if !cut || !strings.HasSuffix(got, " [line cut: 2002 bytes more]") || len(got) > maxLineBytes+40 {
		t.Errorf("cut %t, line ends in %q", cut, got[len(got)-40:])
	}
}
