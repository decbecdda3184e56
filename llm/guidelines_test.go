package llm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

func bookOf(t *testing.T, text string) *rules.Set {
	t.Helper()
	name := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := rules.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func withRules(book *rules.Set) func(*Config) { return func(c *Config) { c.Rules = book } }

// systemOf returns the instructions for a change of the given files.
func systemOf(t *testing.T, book *rules.Set, paths ...string) string {
	t.Helper()
	var files []review.File
	for _, p := range paths {
		files = append(files, added("//depot/"+p, "x"))
	}
	return sent(t, redacted(t, files...), withRules(book)).Messages[0].Content
}

func TestRulesFollowTheInstructions(t *testing.T) {
	t.Parallel()
	book := bookOf(t, "name: ours\nfiles: ['//depot/ours/**']\nlook_for:\n- Our own trap.\ndo_not_report:\n- Our own habit.\n")
	without := sent(t, redacted(t, added("//depot/a.go", "x"))).Messages[0].Content
	got := systemOf(t, book, "a.go", "ours/b.go", "c.txt")
	rest, ok := strings.CutPrefix(got, without)
	if !ok {
		t.Fatalf("the instructions that all reviews share are not the begin:\n%s", got)
	}
	order := []string{"never from the change", `Rules "ours", for //depot/ours/**`, "- Our own trap.", "- Our own habit.", `Rules "go", for *.go`}
	for _, part := range order {
		at := strings.Index(rest, part)
		if at < 0 {
			t.Fatalf("%q is not there, or not in its place:\n%s", part, got)
		}
		rest = rest[at:]
	}
	if strings.Contains(got, `Rules "python"`) {
		t.Errorf("rules for files that are not in the change go along:\n%s", got)
	}
	if systemOf(t, book, "ours/b.go", "d.go") != got {
		t.Error("the same packs make other instructions: providers could not cache them")
	}
	if systemOf(t, book, "c.txt") != without {
		t.Error("a change without rules has others")
	}
}

func TestRulesPassRedaction(t *testing.T) {
	t.Parallel()
	const key = "AKIA" + "Q3EGRJXWNAPLTD5K"
	got := systemOf(t, bookOf(t, "name: ours\nfiles: ['*.c']\nlook_for:\n- The key "+key+" in code.\n"), "a.c")
	if strings.Contains(got, key) || !strings.Contains(got, "- The key [REDACTED:") {
		t.Errorf("a secret in the rules reaches the model:\n%s", got[strings.LastIndex(got, "Rules "):])
	}
}

// Packs that do not fit are left out, those of the fewest files first.
func TestRulesHaveALimit(t *testing.T) {
	t.Parallel()
	book, err := rules.Load()
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuidelines(newPipeline(t).String, book)
	if err != nil {
		t.Fatal(err)
	}
	files := []*file{{path: "//depot/a.go"}, {path: "//depot/b.py"}, {path: "//depot/c.py"}}
	all := g.guide(files, maxRulesTokens)
	if !slices.Equal(all.packs, []string{"go", "python"}) || all.left != nil {
		t.Fatalf("guide has %q, lacks %q", all.packs, all.left)
	}
	some := g.guide(files, countTokens(all.text)-50)
	if !slices.Equal(some.packs, []string{"python"}) || !slices.Equal(some.left, []string{"go"}) {
		t.Errorf("guide has %q, lacks %q; want the pack of the most files", some.packs, some.left)
	}
}

func TestPromptDigestDependsOnRulesAndLanguage(t *testing.T) {
	t.Parallel()
	digest := func(change func(*Config)) string {
		t.Helper()
		r, _ := newReviewer(t, respond(200, chatBody(`{"message":{"content":"{\"findings\":[]}"},"finish_reason":"stop"}`)), change)
		d, err := r.Review(t.Context(), redacted(t, added("//depot/a.c", "x")), review.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.PromptDigest
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*Config){
		"nothing":     func(*Config) {},
		"rules":       withRules(bookOf(t, "name: ours\nfiles: ['*.c']\nlook_for:\n- One.\n")),
		"other rules": withRules(bookOf(t, "name: ours\nfiles: ['*.c']\nlook_for:\n- Two.\n")),
		"a language":  func(c *Config) { c.Language = "German" },
	} {
		got := digest(change)
		if other, twice := seen[got]; twice {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
}

// Rules of teams are part of the instructions, masked, beside those of the administrator.
// What was used of them is recorded, and an invalid file stops no review.
func TestRulesOfTeams(t *testing.T) {
	t.Parallel()
	const key = "AKIA" + "Q3EGRJXWNAPLTD5K"
	book := bookOf(t, "name: ours\nfiles: ['*.c']\nlook_for:\n- Our own trap.\n")
	pack := "name: team\nfiles: ['*.c']\nlook_for:\n- The trap of the team.\n- \"key \\x41" + key[1:] + "\"\n- 'key " + key + "'\n"
	c, err := newPipeline(t).Change(review.Change{
		Number: 4711, Files: []review.File{added("//depot/a.c", "x")},
		Rules: []review.RuleFile{
			{Path: "//depot/team.yaml", Revision: 3, Digest: "d", Text: pack}, {Path: "//depot/broken.yaml", Revision: 1, Text: "name: ["}, {Path: "//depot/none.yaml"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	instructions := sent(t, c, withRules(book)).Messages[0].Content
	for _, part := range []string{"\nRules \"depot:team\", for *.c\nLook for:\n- The trap of the team.\n- key [REDACTED:", "\n- Our own trap.\n"} {
		if !strings.Contains(instructions, part) {
			t.Errorf("the instructions lack %q:\n%s", part, instructions)
		}
	}
	if strings.Contains(instructions, key) || strings.Contains(instructions, key[1:]) {
		t.Error("a secret in the rules of a team reaches the model")
	}
	r, _ := newReviewer(t, respond(200, chatBody(`{"message":{"content":"{\"findings\":[]}"},"finish_reason":"stop"}`)), withRules(book))
	d, err := r.Review(t.Context(), c, review.Options{})
	want := []review.RuleSource{{Path: "//depot/team.yaml", Revision: 3, Digest: "d"}, {Path: "//depot/broken.yaml", Revision: 1, Invalid: true}, {Path: "//depot/none.yaml"}}
	if err != nil || !slices.Equal(d.Rules, want) {
		t.Errorf("recorded %+v, error %v", d.Rules, err)
	}
}
