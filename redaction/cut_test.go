package redaction

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/review"
)

// A secret across the limit of a heading or a job is masked, and no placeholder is cut.
func TestTextsAreCutAfterTheyAreRedacted(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	token := "ghp_" + "x7Kq2mV9tR4wZ1bN8cJ5hL3pD6sF0gYaEuQi"
	for at := 100; at < maxJob+10; at++ {
		heading := strings.Repeat("a", min(at, 400)) + " = \"" + token + "\""
		c, err := p.Change(review.Change{Number: 1, Jobs: []string{"BUG-7\n" + strings.Repeat("a ", at/2) + token + " was leaked"}, Files: []review.File{
			{DepotPath: "//depot/a.go", Action: review.ActionEdit, Type: "text", Diff: "@@ -9,2 +9,2 @@ " + heading + "\n x\n-y\n+z\n@@ -20,1 +20,1 @@\n-y\n+z\n"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		head, rest, _ := strings.Cut(c.Files[0].Diff.String(), "\n")
		for _, text := range []string{head, c.Jobs[0].String()} {
			if leaked := token[:12]; strings.Contains(text, leaked) {
				t.Fatalf("%d bytes before the secret: it is in %q", at, text)
			}
			if i := strings.LastIndex(text, "["); i >= 0 && judge.ShapeLen(text[i:]) == 0 {
				t.Fatalf("%d bytes before the secret: a placeholder is cut in %q", at, text)
			}
		}
		if len(head) > len("@@ -9,2 +9,2 @@ ")+maxHeading || len(c.Jobs[0].String()) > maxJob || rest != " x\n-y\n+z\n@@ -20,1 +20,1 @@\n-y\n+z\n" {
			t.Fatalf("heading of %d bytes, job of %d, rest %q", len(head), len(c.Jobs[0].String()), rest)
		}
	}
}
