package redaction

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// TestDocuments masks the marked values of the documents in testdata/documents.txtar, and nothing else.
func TestDocuments(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/documents.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		name, path, _ := strings.Cut(f.Name, ": ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, end := range []string{"\n", "\r\n"} {
				testDocument(t, path, strings.ReplaceAll(string(f.Data), "\n", end))
			}
		})
	}
}

func testDocument(t *testing.T, path, marked string) {
	t.Helper()
	e := newTestPipeline(t, Config{}).engine
	text := strings.NewReplacer("«", "", "»", "").Replace(marked)
	var got, want []string
	for _, s := range e.scan(sidesOf(text, false), e.hits(text, nil, nil), lex.Of(path)).spans {
		got = append(got, strings.TrimSpace(text[s.start:s.end]))
	}
	for _, part := range strings.Split(marked, "«")[1:] {
		secret, _, _ := strings.Cut(part, "»")
		want = append(want, secret)
	}
	if !slices.Equal(got, want) {
		t.Errorf("masked in %s:\n%q\nwant\n%q\n%s", path, got, want, text)
	}
}

// A document whose secrets are more than 8 KB behind its kind is masked, and its neighbor is not.
func TestFarSecret(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("    note: all of this is a comment of the deployment\n", 400)
	testDocument(t, "a.yaml", "kind: Secret\nmetadata:\n  annotations:\n"+strings.ReplaceAll(filler, "note", "n")+"data:\n  cfg: «aHVudGVyLWtsNDM3b0xE»\n---\nkind: ConfigMap\ndata:\n  cfg: aHVudGVyLWtsNDM3b0xE\n")
}

// A text that is cut within a container of secrets is masked to its end. Where a bracket is missing, that counts as hidden.
func TestCutDocument(t *testing.T) {
	t.Parallel()
	e := newTestPipeline(t, Config{}).engine
	for _, c := range []struct {
		file, text string
		hidden     bool
	}{
		{"a.json", `{"a": 1, "passwords": {"bob": "Fj0rdWater9", "eve": "Tulip7gar`, true},
		{"a.json", `{"a": 1, "passwords": ["Fj0rdWater9", "Tulip7gar`, true},
		{"a.yaml", "passwords:\n  bob: Fj0rdWater9\n  eve: Tulip7gar", false},
		{"a.yaml", "passwords:\n  bob: \"Fj0rdWater9\"\n  eve: \"Tulip7gar", false},
		{"a.yaml", "passwords:\n  - Fj0rdWater9\n  - 'Tulip7gar", false},
		{"a.toml", "[passwords]\nbob = \"Fj0rdWater9\"\neve = \"Tulip7gar", false},
		{"a.sql", "INSERT INTO users (name, password) VALUES\n  ('bob', 'Fj0rdWater9'),\n  ('eve', 'Tulip7gar", false},
	} {
		got := e.scan(sidesOf(c.text, false), e.hits(c.text, nil, nil), lex.Of(c.file))
		pt := part{raw: c.text, scanned: got}
		if out := pt.rendered(); strings.Contains(out, "Fj0rd") || strings.Contains(out, "Tulip") || len(got.hidden) == 0 == c.hidden {
			t.Errorf("%s: masked %q, hidden %v", c.file, out, got.hidden)
		}
	}
	cut := `{"passwords": {"bob": "Fj0rdWater9"}, "a": {"b": "c`
	if got := e.scan(sidesOf(cut, false), e.hits(cut, nil, nil), lex.Of("a.json")); len(got.hidden) > 0 {
		t.Errorf("hidden %v behind the passwords", got.hidden)
	}
}

// The documents of the hunks of a diff are read one by one.
func TestDocumentInDiff(t *testing.T) {
	t.Parallel()
	e := newTestPipeline(t, Config{}).engine
	diff := "@@ -0,0 +1,6 @@\n+variable \"db\" {\n+  default = \"Fj0rdWater9\"\n+  sensitive = true\n+}\n@@ -20,2 +26,3 @@\n a = 1\n+b = \"Tulip7garden\"\n"
	got := e.scan(sidesOf(diff, true), e.hits(diff, nil, nil), lex.Of("a.tf"))
	if len(got.spans) != 1 || diff[got.spans[0].start:got.spans[0].end] != "Fj0rdWater9" {
		t.Errorf("masked %v", got.spans)
	}
}
