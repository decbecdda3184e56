package redaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// table returns the rows of a CSV file, of which row 40 has the given password.
func table(password string) string {
	var text strings.Builder
	text.WriteString("id,name,password,city\n")
	for i := 1; i < 60; i++ {
		if i == 40 {
			fmt.Fprintf(&text, "%d,bob,%s,Bern\n", i, password)
		} else {
			fmt.Fprintf(&text, "%d,user,,Bern\n", i)
		}
	}
	return text.String()
}

// A secret whose reason is outside of the hunk is masked on both sides of the diff,
// in the heading of a hunk, and elsewhere in the change.
func TestWholeFileRevealsSecretsOfHunks(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	const old, now, far = "tr0ub4dor-zebra", "mellow-pelican-9", "stapler-42-horse"
	text := strings.Replace(table(now), "50,user,", "50,user,"+far, 1)
	diff := "@@ -40,3 +40,3 @@ 39,user,,Bern\n 39,user,,Bern\n-40,bob," + old + ",Bern\n+40,bob," + now + ",Bern\n 41,user,,Bern\n" +
		"@@ -57,2 +57,3 @@ 40,bob," + now + ",Bern\n 56,user,,Bern\n+57,user,,Bern\n 58,user,,Bern\n"
	change := func(whole review.Whole) string {
		c, err := p.Change(review.Change{Number: 1, Description: "Remove " + far + " from the tests, bob has " + now + ".", Files: []review.File{
			{DepotPath: "//depot/users.csv", Action: review.ActionEdit, Type: "text", Diff: diff, Whole: whole},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Description.String() + c.Files[0].Diff.String()
	}
	got := change(review.Compress(text))
	for _, secret := range []string{old, now, far} {
		if !strings.Contains(change(nil), secret) {
			t.Errorf("%q is masked without the whole text: nothing is tested", secret)
		}
		if strings.Contains(got, secret) {
			t.Errorf("%q is not masked in\n%s", secret, got)
		}
	}
	if want := "@@ -40,3 +40,3 @@ 39,user,,Bern\n 39,user,,Bern\n-40,bob,[REDACTED:"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q in it", got, want)
	}
}

// A diff that does not lead to the text is not masked by it, so it is blocked.
func TestWholeFileThatDoesNotFitIsBlocked(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]review.File{
		"another text":     {Diff: "@@ -1,1 +1,1 @@\n-a\n+b\n", Whole: review.Compress("c\n")},
		"a shorter text":   {Diff: "@@ -9,1 +9,1 @@\n-a\n+b\n", Whole: review.Compress("b\n")},
		"a longer line":    {Diff: "@@ -1,1 +1,1 @@\n-a\n+b\n", Whole: review.Compress("bb\n")},
		"no compression":   {Diff: "@@ -1,1 +1,1 @@\n-a\n+b\n", Whole: review.Whole("b\n")},
		"an odd header":    {Diff: "@@ +1 @@\n+b\n", Whole: review.Compress("b\n")},
		"a heading of old": {Diff: "@@ -1,1 +1,1 @@ x\n-a\n+b\n", Whole: review.Compress("x\n")},
	} {
		if _, err := newTestPipeline(t, Config{}).Change(review.Change{Number: 1, Files: []review.File{file}}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// The sides of a diff are those that it was made from.
func TestWholeSides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, after, diff string }{
		"an edit":         {"a\nb\nc\nd\n", "a\nB\nc\nd\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		"two hunks":       {"a\nb\nc\nd\ne\n", "A\nb\nc\nd\n", "@@ -1,1 +1,1 @@\n-a\n+A\n@@ -5,1 +4,0 @@\n-e\n"},
		"all gone":        {"a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"newline at end":  {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		"no newline":      {"a\nb", "c\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"},
		"a removed line":  {"a\nb\nc\n", "a\nc\n", "@@ -2,1 +1,0 @@\n-b\n"},
		"carriage return": {"a\r\n", "b\r\n", "@@ -1,1 +1,1 @@\n-a\r\n+b\r\n"},
	} {
		sides, err := wholeSides(tt.diff, tt.after)
		if err != nil || sides[0].text != tt.after || len(sides) > 1 && sides[1].text != tt.before {
			t.Errorf("%s: %v, %v", name, sides, err)
		}
		for _, side := range sides {
			for _, r := range side.shown {
				if side.text[r.from:r.to] != tt.diff[r.at:r.at+r.to-r.from] {
					t.Errorf("%s: %q is shown as %q", name, side.text[r.from:r.to], tt.diff[r.at:])
				}
			}
		}
	}
}
