package redaction

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/review"
)

// contextChange has a block of the changed file and one of a file beside it. Only the
// head of the table, which no block shows, reveals the secret.
func contextChange(secret string) review.Change {
	table := "INSERT INTO users (name, password) VALUES\n" + strings.Repeat("  ('ann', 'Vermilion-Otter-77'),\n", 3)
	table = strings.Replace(table, "Vermilion-Otter-77", secret, 2)
	return review.Change{
		Number: 7,
		Files: []review.File{{
			DepotPath: "//depot/a.sql", Action: review.ActionEdit, Size: int64(len(table)),
			Diff: "@@ -1,1 +1,1 @@\n-x\n+" + strings.SplitAfter(table, "\n")[0], Whole: review.Compress(table),
		}},
		Rules: []review.RuleFile{{Path: "//depot/rules.yaml", Revision: 2, Digest: "d", Text: "look_for: [password = \"" + secret + "\"]"}},
		Context: review.Context{
			Sources: []review.Source{{Path: "//depot/b.sql", Whole: review.Compress(table)}},
			Blocks: []review.Block{
				{Tier: review.TierChange, Kind: review.BlockEnclosing, Path: "//depot/a.sql", Line: 2, Lines: 2, For: []int{0}},
				{Tier: review.TierSiblings, Kind: review.BlockDefinition, Path: "//depot/b.sql", Line: 3, Lines: 9, For: []int{0}, Names: []string{"users", "ann"}},
			},
		},
	}
}

func TestContextIsMaskedAndSealed(t *testing.T) {
	t.Parallel()
	secret := "hunter" + "-Marigold-41"
	p := newTestPipeline(t, Config{})
	c, err := p.Change(contextChange(secret))
	if err != nil || len(c.Context) != 2 {
		t.Fatalf("%d blocks, %v", len(c.Context), err)
	}
	for i, b := range c.Context {
		if text := b.Text.String(); strings.Contains(text, secret) || strings.Count(text, "\n") != 2 || !strings.Contains(text, judge.PlaceholderHead) {
			t.Errorf("block %d: %q", i, text)
		}
	}
	if got := c.Context[1]; got.Line != 3 || got.Path.String() != "//depot/b.sql" || got.Names.String() != "users ann" || !slices.Equal(got.For, []int{0}) {
		t.Errorf("got %+v", got)
	}
	sealed, err := p.Seal(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := p.Unseal(sealed)
	if err != nil || !reflect.DeepEqual(back.Context, c.Context) || !reflect.DeepEqual(back.Rules, c.Rules) || strings.Contains(string(sealed), secret) || back.Files[0].Size != c.Files[0].Size {
		t.Errorf("unsealed %+v, %v, want %+v", back.Context, err, c.Context)
	}
}

// The lines of a block are those of the file, although a patch is read as the sides of a diff.
func TestBlockOfAPatch(t *testing.T) {
	t.Parallel()
	raw := contextChange("x")
	raw.Context.Sources = []review.Source{{Path: "//depot/b.patch", Whole: review.Compress("--- a\n+++ b\n@@ -1,2 +1,2 @@\n-password = \"Fj0rdWater9\"\n+password = \"Tulip7garden\"\n x\n")}}
	raw.Context.Blocks = []review.Block{{Path: "//depot/b.patch", Line: 4, Lines: 2}}
	c, err := newTestPipeline(t, Config{}).Change(raw)
	if err != nil || len(c.Context) != 1 {
		t.Fatalf("%d blocks, %v", len(c.Context), err)
	}
	if text := c.Context[0].Text.String(); !strings.HasPrefix(text, "-password = \"[REDACTED:") || !strings.Contains(text, "\n+password = \"[REDACTED:") {
		t.Errorf("got %q", text)
	}
}

// A text beside the files that is not text is left out, and the change is not.
func TestUnreadableTextIsAGap(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat("\x01\x02\n", 9)
	raw := contextChange("x")
	raw.Description, raw.Jobs, raw.Rules = noise, []string{"BUG-1\n" + noise, "BUG-2\nIt drips."}, []review.RuleFile{{Path: "//depot/rules.yaml", Text: noise}}
	c, err := newTestPipeline(t, Config{}).Change(raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := []review.Gap{review.GapDescription, review.GapJobs, review.GapRules}; !slices.Equal(c.Gaps, want) || c.Files[0].Diff.String() == "" {
		t.Errorf("gaps %v, want %v", c.Gaps, want)
	}
	if c.Description.String() != "" || c.Jobs[0].String() != "" || c.Jobs[1].String() != raw.Jobs[1] || c.Rules[0].Text.String() != "" {
		t.Errorf("description %q, jobs %v, rules %v", c.Description, c.Jobs, c.Rules)
	}
}

// A context that cannot be redacted is left out, and the change is not.
func TestUnreadableContextIsAGap(t *testing.T) {
	t.Parallel()
	for name, sources := range map[string][]review.Source{
		"no text":       nil,
		"a broken text": {{Path: "//depot/b.sql", Whole: review.Whole("x")}},
		"no characters": {{Path: "//depot/b.sql", Whole: review.Compress("\n\n" + strings.Repeat("\x01\x02\n", 9))}},
		"too large":     {{Path: "//depot/b.sql", Whole: review.Compress("\n\n" + strings.Repeat("x", 2<<20) + "\n")}},
	} {
		raw := contextChange("x")
		raw.Context.Sources = sources
		c, err := newTestPipeline(t, Config{MaxBytes: 1 << 20}).Change(raw)
		if err != nil || c.Context != nil || !slices.Equal(c.Gaps, []review.Gap{review.GapContext}) || c.Files[0].Diff.String() == "" {
			t.Errorf("%s: %d blocks, gaps %v, %v", name, len(c.Context), c.Gaps, err)
		}
	}
}
